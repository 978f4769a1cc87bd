"""The request id: in the log context of whatever a request does, and in its response."""

import re
import uuid

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-ID"
_HARMLESS = re.compile(r"(?!req-)[A-Za-z0-9._:-]{1,128}")  # what begins so is always our word


class RequestIdMiddleware:
    """Puts `request_id` into the scope's state, the log context and the response headers.

    As the outermost it also takes a slash from the end of the path, where some clients leave one: no route
    but `/` ends so, and after a redirection some clients repeat neither their body nor their token.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["path"] != "/":
            scope["path"] = scope["path"].removesuffix("/")
        offered = Headers(scope=scope).get(HEADER, "")
        identifier = offered if _HARMLESS.fullmatch(offered) else f"req-{uuid.uuid4().hex}"
        scope.setdefault("state", {})["request_id"] = identifier

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = identifier
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=identifier):
            await self.app(scope, receive, send_with_id)


def request_id(scope: Scope) -> str:
    return str(scope["state"]["request_id"])
