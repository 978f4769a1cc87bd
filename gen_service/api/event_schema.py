"""Streams in the API's description: what each of their events holds."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

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
