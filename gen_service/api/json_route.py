"""Routes that take the body as `JsonBodyMiddleware` has parsed it, and name fields that nobody knows.

Streams in the API's description: what each of their events holds.
"""

import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ttmark.gen_service.api.watermark_block import WARNING
from ttmark.shared.http.json_body import PARSED_JSON
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.unknown_fields import UnknownField, unknown_fields

Handle = Callable[[Request], Coroutine[Any, Any, Response]]
_MOST_NAMED = 20


class _ParsedRequest(Request):
    async def json(self) -> Any:
        return self.scope["state"][PARSED_JSON]


class JsonRoute(APIRoute):
    """For `APIRouter(route_class=JsonRoute)`: a body with an unknown field is refused."""

    def get_route_handler(self) -> Handle:
        """The framework's handler, given a request that knows its body already."""
        handle = super().get_route_handler()

        async def handle_parsed(request: Request) -> Response:
            return await handle(_ParsedRequest(request.scope, request.receive))

        if self.body_field is None:
            return handle_parsed
        return self.named(handle_parsed, self.body_field.field_info.annotation)

    def named(self, handle: Handle, body: Any) -> Handle:
        """A handler that names an unknown field of a `body` before anything else that is wrong with it."""

        async def refuse_by_name(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError:
                parsed = request.scope["state"].get(PARSED_JSON)
                unknown = next(unknown_fields(body, parsed), None)
                if unknown is None:
                    raise
                raise BadRequest(unknown.message, param=unknown.path) from None

        return refuse_by_name


class IgnoringRoute(JsonRoute):
    """Leaves unknown fields aside and lists them in a header; those in parts of our own are refused."""

    def named(self, handle: Handle, body: Any) -> Handle:
        """A handler that takes the fields out of the body first."""
        refuse = super().named(handle, body)

        async def ignore_by_name(request: Request) -> Response:
            parsed = request.scope["state"].get(PARSED_JSON)
            ignored = [unknown for unknown in unknown_fields(body, parsed) if not unknown.closed]
            for unknown in ignored:
                del unknown.holder[unknown.name]
            response = await refuse(request)
            if ignored:
                response.headers[WARNING] = _warning(ignored)
            return response

        return ignore_by_name


def _warning(ignored: Sequence[UnknownField]) -> str:
    """A warning as RFC 7234 writes it; what a header cannot hold is a question mark."""
    named = [re.sub(r"[^\w.\[\]-]", "?", one.path, flags=re.ASCII) for one in ignored[:_MOST_NAMED]]
    more = f" and {len(ignored) - _MOST_NAMED} more" if len(ignored) > _MOST_NAMED else ""
    return f'299 - "Ignored: {", ".join(named)}{more}"'


_COMPONENTS = "#/components/schemas/{model}"


def event_content(*payloads: type[BaseModel], ends_with: str | None = None) -> dict[str, Any]:
    """The `content` of a response whose events hold one of `payloads` as JSON, and at the end `ends_with`.

    OpenAPI 3.1 has no keyword for the items of a stream (3.2 has `itemSchema`). Tools that read streams by a
    3.1 description take `schema` as that of each event, and so is it meant.
    """
    references = [{"$ref": _COMPONENTS.format(model=model.__name__)} for model in payloads]
    data: dict[str, Any] = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"anyOf": references},
    }
    schema = {
        "type": "object",
        "description": "One server-sent event; the body is a sequence of them.",
        "required": ["data"],
        "properties": {"data": {"anyOf": [{"const": ends_with}, data]} if ends_with else data},
    }
    return {"text/event-stream": {"schema": schema}}


def describe_events(app: FastAPI, *payloads: type[BaseModel]) -> None:
    """Defines `payloads` in the API's description: the framework knows of models of whole bodies only."""
    describe: Callable[[], dict[str, Any]] = app.openapi

    def openapi() -> dict[str, Any]:
        description = describe()
        _, definitions = models_json_schema(
            [(model, "serialization") for model in payloads], ref_template=_COMPONENTS
        )
        description["components"]["schemas"] = definitions["$defs"] | description["components"]["schemas"]
        return description

    app.openapi = openapi  # type: ignore[method-assign]
