"""Routes that take the body as `JsonBodyMiddleware` has parsed it, instead of parsing it again."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from ttmark.shared.http.json_body import PARSED_JSON


class _ParsedRequest(Request):
    async def json(self) -> Any:
        return self.scope["state"][PARSED_JSON]


class JsonRoute(APIRoute):
    """For `APIRouter(route_class=JsonRoute)`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's handler, given a request that knows its body already."""
        handle = super().get_route_handler()

        async def handle_parsed(request: Request) -> Response:
            return await handle(_ParsedRequest(request.scope, request.receive))

        return handle_parsed
