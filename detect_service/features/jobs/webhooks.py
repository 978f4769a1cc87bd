"""Signed calls to addresses that the operator has allowed, in the format of Standard Webhooks.

See https://www.standardwebhooks.com: receivers check the signature with any of its libraries.
"""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Collection

import httpx

from ttmark.shared.outgoing import http_client
from ttmark.shared.vault.confidential import Confidential

SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with
_PORTS = {"http": 80, "https": 443}
_CALL_SECONDS = 10.0


def secret_of(text: str) -> bytes:
    """The secret: `whsec_` and base64 of 24 to 64 bytes. Raises ValueError: another form, not repeated."""
    try:
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        secret = b""
    if not text.startswith(SECRET_PREFIX) or not 24 <= len(secret) <= 64:
        raise ValueError("the secret of webhooks is whsec_ and base64 of 24 to 64 random bytes")
    return secret


def signature(secret: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and base64 of HMAC-SHA256 over id, time and body."""
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


class Webhooks(Confidential):
    """Calls hosts of a list and no other; follows no redirection and uses no proxy of the environment.

    Args:
        hosts: `name` for the usual port of http or https, `name:port` for another one.
        seconds: of a call, from looking up the host's name to the last byte of the answer's head.
        transport: replaces the network, for tests.
    """

    def __init__(
        self,
        hosts: Collection[str],
        secret: bytes,
        *,
        seconds: float = _CALL_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._secret = secret
        self._seconds = seconds
        self._transport = transport
        self._now = now

    def allows(self, address: str) -> bool:
        """Whether it is an http or https address of a listed host, without credentials."""
        try:
            url = httpx.URL(address)
            name = url.host.lower()
        except (httpx.InvalidURL, UnicodeError):  # the host is read as IDNA, which not every name is
            return False
        if url.scheme not in _PORTS or url.userinfo:
            return False
        port = url.port or _PORTS[url.scheme]
        return (f"{name}:{port}" if port != _PORTS[url.scheme] else name) in self._hosts

    async def call(self, address: str, message_id: str, body: bytes) -> bool:
        """Whether the address took the message: any status of 200 to 299 within `seconds`."""
        if not self.allows(address):
            return False
        timestamp = int(self._now())
        headers = {
            "Content-Type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._secret, message_id, timestamp, body),
        }
        try:
            async with (
                http_client(seconds=self._seconds, environment=False, transport=self._transport) as client,
                client.stream("POST", address, content=body, headers=headers) as response,
            ):
                return response.is_success
        except httpx.HTTPError:
            return False
