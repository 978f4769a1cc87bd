"""Request bodies: read within limits, and strict JSON or a 4xx, before any route sees them.

Compressed bodies are refused: without decompression there are no bombs. Of each tenant few long bodies are
taken in at a time, and the others wait unread but for their beginning. Who has a turn sends at a least rate.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any
from weakref import WeakValueDictionary

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ttmark.shared.access.scopes import Scope as AccessScope
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.incoming_body import HttpLimits, IncomingBody
from ttmark.shared.http.service_errors import ErrorRenderer, ServiceError, UnsupportedMediaType
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
    """Reads the body, refuses it or hands it on, whole and parsed; an empty body passes.

    `scopes` says what the callers of some paths need: without it, their bodies are not read.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: HttpLimits,
        render: ErrorRenderer,
        run_long: RunLong | None = None,
        scopes: Mapping[str, AccessScope] | None = None,
    ) -> None:
        self.app = app
        self.scopes = scopes or {}
        self.run_long = run_long
        self.limits = limits
        self.render = render
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _METHODS_WITH_BODY:
            await self.app(scope, receive, send)
            return
        try:
            self._check_scope(scope)
            body = await self._taken_in(scope, receive)
        except ServiceError as error:
            await self.render(error, scope)(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    def _check_scope(self, scope: Scope) -> None:
        needed, caller = self.scopes.get(scope["path"]), scope["state"].get("principal")
        if needed is not None and caller is not None:
            check_scope(caller, needed)

    async def _taken_in(self, scope: Scope, receive: Receive) -> bytes:
        """The body, which is parsed; a tenant's turn is taken once more has come than a short one has."""
        limits = self.limits.of(scope["path"])
        headers = Headers(scope=scope)
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise UnsupportedMediaType("Send the body uncompressed: Content-Encoding is not supported.")
        incoming = IncomingBody(headers, receive, limits)
        await incoming.read(LONG_BODY_BYTES)
        if incoming.complete and incoming.size <= LONG_BODY_BYTES:
            return await self._parsed(incoming, scope, receive, limits)
        async with self._turn(scope):
            await incoming.read(limits.max_body_bytes, limits.least_body_rate)
            return await self._parsed(incoming, scope, receive, limits)

    def _turn(self, scope: Scope) -> AbstractAsyncContextManager[None]:
        """A tenant's turn to send the rest of a long body."""
        caller = scope["state"].get("principal")
        if caller is None:
            return nullcontext()
        turns = self._turns.get(caller.line)
        if turns is None:
            turns = self._turns[caller.line] = asyncio.Semaphore(_LONG_BODIES_AT_ONCE)
        return turns

    async def _parsed(
        self, incoming: IncomingBody, scope: Scope, receive: Receive, limits: HttpLimits
    ) -> bytes:
        if not incoming.size:
            return b""
        media_type = Headers(scope=scope).get("content-type", "").partition(";")[0].strip()
        if not _JSON_TYPE.fullmatch(media_type):
            raise UnsupportedMediaType("The body must be JSON: send Content-Type: application/json.")
        scope["state"][BODY_BYTES] = incoming.size

        def parse() -> bytes:
            body = incoming.content()
            scope["state"][PARSED_JSON] = parse_json(body, limits)
            return body

        if self.run_long is None or incoming.size <= LONG_BODY_BYTES:
            return parse()
        body: bytes = await self.run_long(Request(scope, receive), incoming.size, parse)
        return body


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed
