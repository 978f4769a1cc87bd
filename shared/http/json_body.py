"""Request bodies: read within limits, and strict JSON or a 4xx, before any route sees them.

Compressed bodies are refused: without decompression there are no bombs. Of each tenant few long bodies are
taken in at a time, and the others wait unread: nobody else is served while one is read and parsed.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any
from weakref import WeakValueDictionary

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ttmark.shared.http.error_format import ErrorRenderer
from ttmark.shared.http.limits import HttpLimits
from ttmark.shared.http.service_errors import RequestTimeout, ServiceError, TooLarge, UnsupportedMediaType
from ttmark.shared.http.strict_json import parse_json

PARSED_JSON = "parsed_json"
BODY_BYTES = "body_bytes"
# Parsing less takes less time than handing it to another thread and back.
LONG_BODY_BYTES = 32_768
_LONG_BODIES_AT_ONCE = 2
RunLong = Callable[[Request, int, Callable[[], Any]], Awaitable[Any]]
"""Request, bytes of its body, work that grows with them -> what the work gives; off the event loop."""
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_JSON_TYPE = re.compile(r"application/(?:json|[\w.+-]+\+json)", re.IGNORECASE)


class JsonBodyMiddleware:
    """Reads the body, refuses it or hands it on, whole and parsed; an empty body passes."""

    def __init__(
        self, app: ASGIApp, limits: HttpLimits, render: ErrorRenderer, run_long: RunLong | None = None
    ) -> None:
        self.app = app
        self.run_long = run_long
        self.limits = limits
        self.render = render
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _METHODS_WITH_BODY:
            await self.app(scope, receive, send)
            return
        try:
            async with self._turn(scope):
                body = await self._read(scope, receive)
        except ServiceError as error:
            await self.render(error, scope)(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    def _turn(self, scope: Scope) -> AbstractAsyncContextManager[None]:
        """A tenant's turn to send a long body, or one whose length it does not say."""
        declared = Headers(scope=scope).get("content-length", "")
        caller = scope["state"].get("principal")
        if caller is None or (declared.isdecimal() and int(declared[:20]) <= LONG_BODY_BYTES):
            return nullcontext()
        turns = self._turns.get(caller.line)
        if turns is None:
            turns = self._turns[caller.line] = asyncio.Semaphore(_LONG_BODIES_AT_ONCE)
        return turns

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        limits = self.limits.of(scope["path"])
        headers = Headers(scope=scope)
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise UnsupportedMediaType("Send the body uncompressed: Content-Encoding is not supported.")
        try:
            async with asyncio.timeout(limits.body_seconds):
                body = await _read_within(headers, receive, limits.max_body_bytes)
        except TimeoutError:
            seconds = limits.body_seconds
            raise RequestTimeout(f"The body did not arrive within {seconds:g} seconds.") from None
        if body:
            media_type = headers.get("content-type", "").partition(";")[0].strip()
            if not _JSON_TYPE.fullmatch(media_type):
                raise UnsupportedMediaType("The body must be JSON: send Content-Type: application/json.")
            scope["state"][BODY_BYTES] = len(body)
            if self.run_long is None or len(body) <= LONG_BODY_BYTES:
                scope["state"][PARSED_JSON] = parse_json(body, limits)
            else:
                scope["state"][PARSED_JSON] = await self.run_long(
                    Request(scope, receive), len(body), lambda: parse_json(body, limits)
                )
        return body


async def _read_within(headers: Headers, receive: Receive, limit: int) -> bytes:
    error = TooLarge(f"The body is larger than the limit of {limit} bytes.")
    declared = headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise error
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise error
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed
