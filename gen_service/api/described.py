"""How the routes of the generation service are described: answers, errors, and the events of streams."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ttmark.gen_service.api.plan.watermark_report import described_headers
from ttmark.shared.schemas.fields import ErrorEnvelope
from ttmark.shared.schemas.generation.chat import ChatChunk
from ttmark.shared.schemas.generation.completions import CompletionResponse

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


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorEnvelope, "description": description}
    for status, description in {
        400: "The body is not strict JSON, or a field is at fault; `param` names it",
        401: "No valid access token",
        403: "The token lacks a scope",
        404: "Unknown model or watermark key",
        408: "The body did not arrive in time",
        413: "The body is too large",
        415: "The body is not uncompressed JSON",
        429: "The queue is full, or a limit of the token is reached; Retry-After says when to try again",
        500: "The completion failed while it was generated",
        503: "Not ready, shutting down, or no watermark key",
    }.items()
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: ERRORS[status] for status in statuses}


def with_stream(
    description: str, *payloads: type[BaseModel], ends_with: str | None = None
) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that can stream `payloads`."""
    content = event_content(*payloads, ends_with=ends_with)
    return {200: {"description": description, "content": content, "headers": described_headers()}, **ERRORS}


_CHOICES = "The completions, or with `stream` their events"
COMPLETION_RESPONSES = with_stream(_CHOICES, CompletionResponse, ErrorEnvelope, ends_with="[DONE]")
CHAT_RESPONSES = with_stream(_CHOICES, ChatChunk, ErrorEnvelope, ends_with="[DONE]")
EVENT_PAYLOADS: tuple[type[BaseModel], ...] = (CompletionResponse, ChatChunk, ErrorEnvelope)
