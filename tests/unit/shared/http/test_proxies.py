"""Whose word the server takes for who its client is."""

from typing import Any

import httpx
import pytest

from ttmark.services.composition.server import server_config
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.startup import StartupError
from ttmark.shared.http.connections import ConnectionLimits, bounded_protocol

PROXY, STRANGER, CLIENT = "10.1.2.3", "192.0.2.9", "198.51.100.7"


async def client_seen(proxies: tuple[str, ...], peer: str, *headers: tuple[str, str]) -> str:
    """The address that an application sees behind the server."""
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    config = server_config(app, bounded_protocol(ConnectionLimits()), proxies, 1)
    config.load()
    transport = httpx.ASGITransport(config.loaded_app, client=(peer, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        await client.get("/", headers=list(headers))
    return seen[0]


@pytest.mark.parametrize("peer", [PROXY, STRANGER, "127.0.0.1", "::1"])
async def test_nobody_is_believed_unless_the_operator_says_so(peer, monkeypatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert await client_seen((), peer, ("X-Forwarded-For", CLIENT)) == peer


@pytest.mark.parametrize(
    ("headers", "seen"),
    [
        ([CLIENT], CLIENT),
        ([f"203.0.113.1, {CLIENT}"], CLIENT),  # the proxy adds the address that it saw to what it was sent
        (["203.0.113.1", CLIENT], CLIENT),
        ([f"203.0.113.1, {CLIENT}, 10.9.9.9"], CLIENT),  # two proxies
        ([f"{CLIENT}:4711"], CLIENT),
        (["10.9.9.9"], "10.9.9.9"),
        ([""], PROXY),
        ([], PROXY),
    ],
)
async def test_a_proxy_is_believed_about_the_last_address_that_it_did_not_get_from_one(headers, seen):
    sent = [("X-Forwarded-For", value) for value in headers]
    assert await client_seen(("10.0.0.0/8",), PROXY, *sent) == seen
    assert await client_seen(("10.0.0.0/8",), STRANGER, *sent) == STRANGER


@pytest.mark.parametrize("value", ["*", "proxy.example.org", "10.0.0.1/8", "10.0.0.0/8,*"])
def test_what_is_no_network_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTMARK_TRUSTED_PROXIES", value)
    with pytest.raises(StartupError, match="TTMARK_TRUSTED_PROXIES: each is an address, or a network"):
        DetectionSettings()


def test_proxies_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTMARK_TRUSTED_PROXIES", " 10.0.0.0/8, ::1 ,")
    assert DetectionSettings().trusted_proxies == ("10.0.0.0/8", "::1")
