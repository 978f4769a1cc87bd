"""Routes whose input is a JSON body and who sends it, read without the framework's way of finding arguments.

What the framework looks up anew for each request is known of these: a tenth of the time of a short one.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, get_type_hints

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError

from ttmark.shared.access.scopes import Scope
from ttmark.shared.http.auth import caller_with_scope
from ttmark.shared.http.request_body import BODY_BYTES, LONG_BODY_BYTES, PARSED_BODY, RunLong
from ttmark.shared.schemas.unknown_fields import unknown_fields


class BodyRoute(APIRoute):
    needs: ClassVar[Scope]


def body_route(
    scope: Scope, run_long: RunLong, shorten: Callable[[Any], None] = lambda _: None
) -> type[BodyRoute]:
    """For `APIRouter(route_class=...)`: calls `endpoint(body, caller, request)` for callers with `scope`.

    `run_long` validates long bodies, of which `shorten` first takes away what is refused anyway. The endpoint
    gives a Response. Its signature describes the route as any other does.
    """

    class Route(BodyRoute):
        needs = scope

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            body_type = get_type_hints(self.endpoint)["body"]
            adapter: TypeAdapter[Any] = TypeAdapter(body_type)

            def valid(request: Request, *, is_long: bool) -> Any:
                state = request.scope["state"]
                if PARSED_BODY not in state:
                    missing = {"type": "missing", "loc": ("body",), "msg": "Field required"}
                    raise RequestValidationError([missing])
                if is_long:
                    shorten(state[PARSED_BODY])
                return valid_fields(body_type, adapter, state[PARSED_BODY])

            async def handle(request: Request) -> Response:
                caller = caller_with_scope(request, scope)
                size = body_size(request)
                if size <= LONG_BODY_BYTES:
                    body = valid(request, is_long=False)
                else:
                    body = await run_long(request, size, partial(valid, request, is_long=True))
                response: Response = await self.endpoint(body, caller, request)
                return response

            return handle

    return Route


def json_answer(model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The model as it is: the framework would validate it a second time."""
    return Response(model.model_dump_json(), status, headers, "application/json")


def body_scopes(routers: Iterable[APIRouter]) -> dict[str, Scope]:
    """What callers need for the routes with a body, by path."""
    return {
        route.path: route.needs
        for router in routers
        for route in router.routes
        if isinstance(route, BodyRoute)
    }


def body_size(request: Request) -> int:
    size: int = request.scope["state"].get(BODY_BYTES, 0)
    return size


def valid_fields(body_type: type[BaseModel], adapter: TypeAdapter[Any], fields: Any) -> Any:
    """What the fields are by their schema.

    Raises:
        RequestValidationError: naming those at fault, and of an unknown one what it was meant to be.
    """
    try:
        return adapter.validate_python(fields)
    except ValidationError as error:
        problems: list[dict[str, Any]] = [
            {**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_url=False)
        ]
        # A misspelt field is missing, too: its name comes first, beside the one that is meant.
        unknown = next(unknown_fields(body_type, fields), None)
        if unknown is not None:
            problems = [
                {"type": "unknown", "loc": ("body", unknown.path), "msg": unknown.message},
                *(one for one in problems if one["loc"][-1] != unknown.name),
            ]
        raise RequestValidationError(problems) from None
