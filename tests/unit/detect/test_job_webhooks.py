"""Calls at the end of a job: signed, to listed hosts alone, repeated until they are taken."""

import base64
import hashlib
import hmac
import json
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from tests.unit.detect.test_job_calls import finish
from ttmark.detect_service.api.metrics_and_audit import JobMetrics
from ttmark.detect_service.jobs.background import MOST_CALLS, JobCalls
from ttmark.detect_service.jobs.sealed_jobs import Jobs
from ttmark.detect_service.jobs.sqlite_jobs import SqliteJobs
from ttmark.detect_service.jobs.webhooks import Webhooks, secret_of, signature
from ttmark.services.settings.cases_and_jobs import JobSettings
from ttmark.services.startup import StartupError
from ttmark.shared.access.scopes import Principal
from ttmark.shared.vault.kek import KeyEncryptionKey

HOSTS = ("hooks.example.org", "inside:8080")
SECRET = bytes(range(32))
ADDRESS = "https://hooks.example.org/ttmark?x=1"


def test_the_signature_is_that_of_standard_webhooks() -> None:
    # The example that the libraries of https://www.standardwebhooks.com are tested with.
    secret = secret_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        (ADDRESS, True),
        ("HTTPS://Hooks.Example.org", True),
        ("http://hooks.example.org:80/", True),
        ("http://inside:8080/a", True),
        ("https://inside:8080/a", True),
        ("http://inside/a", False),
        ("https://hooks.example.org:8443/", False),
        ("https://hooks.example.org.evil.example/", False),
        ("https://evil.example/hooks.example.org", False),
        ("https://hooks.example.org@evil.example/", False),
        ("https://user@hooks.example.org/", False),
        ("http://169.254.169.254/latest", False),
        ("http://127.0.0.1:8001/", False),
        ("http://[::1]/", False),
        ("ftp://hooks.example.org/", False),
        ("file:///etc/passwd", False),
        ("//hooks.example.org/", False),
        ("hooks.example.org", False),
        ("http://", False),
        ("http://a:b:c", False),
        ("https://hooks.example.org\\@evil.example/", False),
        ("", False),
    ],
)
def test_only_listed_hosts_are_called(address: str, allowed: bool) -> None:
    assert Webhooks(HOSTS, SECRET).allows(address) == allowed


async def test_a_redirection_is_a_failure_and_is_not_followed() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(307, headers={"Location": "http://127.0.0.1/"})

    webhooks = Webhooks(HOSTS, SECRET, transport=httpx.MockTransport(answer))
    assert not await webhooks.call(ADDRESS, "job", b"{}")
    assert asked == [ADDRESS]
    assert not await webhooks.call("http://127.0.0.1/", "job", b"{}")
    assert asked == [ADDRESS]


def test_settings_need_a_secret_in_its_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert JobSettings().open_webhooks() is None
    monkeypatch.setenv("TTMARK_WEBHOOK_HOSTS", " hooks.example.org, inside:8080 ")
    assert JobSettings().webhook_hosts == HOSTS
    for secret in (None, "hunter2", "whsec_c2hvcnQ=", base64.b64encode(SECRET).decode()):
        if secret is not None:
            monkeypatch.setenv("TTMARK_WEBHOOK_SECRET", secret)
        with pytest.raises(StartupError) as refused:
            JobSettings().open_webhooks()
        assert "hunter2" not in str(refused.value)
    (tmp_path / "secret").write_text(f"whsec_{base64.b64encode(SECRET).decode()}\n")
    monkeypatch.delenv("TTMARK_WEBHOOK_SECRET")
    monkeypatch.setenv("TTMARK_WEBHOOK_SECRET_FILE", str(tmp_path / "secret"))
    assert JobSettings().open_webhooks() is not None


async def test_a_finished_job_is_told_of_until_somebody_hears_it(tmp_path: Path) -> None:
    kek, now, heard = KeyEncryptionKey(bytes(32)), 1000.0, list[httpx.Request]()
    status = 500

    def answer(request: httpx.Request) -> httpx.Response:
        heard.append(request)
        return httpx.Response(status)

    async def nobody(_: str) -> Principal:
        raise AssertionError

    webhooks = Webhooks(HOSTS, SECRET, transport=httpx.MockTransport(answer), now=lambda: now)
    store = SqliteJobs(tmp_path / "jobs.db", lease_seconds=30)
    registry = CollectorRegistry()
    calls = JobCalls(Jobs(store, kek, nobody, webhooks=webhooks), JobMetrics(registry), now=lambda: now)

    await finish(store, "j1", "a", ADDRESS, now=now)
    assert await calls.call_once()
    assert not await calls.call_once()
    now, status = now + 11, 204
    assert await calls.call_once()
    now += 1e6
    assert not await calls.call_once()
    assert len(heard) == 2
    body = heard[1].content
    assert json.loads(body)["type"] == "job.finished"
    assert json.loads(body)["data"]["id"] == "j1"
    assert json.loads(body)["data"]["status"] == "finished"
    sent = heard[1].headers
    assert (sent["webhook-id"], sent["webhook-timestamp"]) == ("j1", "1011")
    expected = hmac.new(SECRET, b"j1.1011." + body, hashlib.sha256).digest()
    assert sent["webhook-signature"] == f"v1,{base64.b64encode(expected).decode()}"

    await finish(store, "j2", "a", ADDRESS, now=now)
    status = 500
    heard.clear()
    for _ in range(MOST_CALLS + 3):
        await calls.call_once()
        now += 1e5
    assert len(heard) == MOST_CALLS
    counts = [
        registry.get_sample_value("ttmark_job_calls_total", {"outcome": outcome})
        for outcome in ("taken", "failed", "given_up")
    ]
    assert counts == [1, 1 + MOST_CALLS - 1, 1]
    await store.close()
