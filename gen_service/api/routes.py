"""The OpenAI routes."""

import time
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from gen_service.api.backend import GenerationBackend
from gen_service.api.chat_format import ChatFormat
from gen_service.api.completion_format import CompletionFormat
from gen_service.api.models import describe
from gen_service.api.plan import plan_chat, plan_completion
from gen_service.api.respond import Responder
from gen_service.api.token_text import TokenText
from shared.http.auth import require
from shared.http.json_route import JsonRoute
from shared.keys.scopes import Principal, Scope
from shared.schemas.chat import ChatChunk, ChatRequest, ChatResponse
from shared.schemas.completions import CompletionRequest, CompletionResponse
from shared.schemas.errors import ErrorEnvelope
from shared.schemas.models import Model, ModelList

Author = Annotated[Principal, Depends(require(Scope.GENERATE))]

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


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: ERRORS[status] for status in statuses}


def _with_stream(chunk: type[CompletionResponse] | type[ChatChunk]) -> dict[int | str, dict[str, Any]]:
    payloads = [{"$ref": f"#/components/schemas/{model.__name__}"} for model in (chunk, ErrorEnvelope)]
    data = {
        "anyOf": [
            {"const": "[DONE]"},
            {"type": "string", "contentMediaType": "application/json", "contentSchema": {"anyOf": payloads}},
        ]
    }
    # OpenAPI 3.2's keyword for the items of a stream: tools of 3.1 that do not know it pass over it.
    item = {"type": "object", "required": ["data"], "properties": {"data": data}}
    events = {"text/event-stream": {"itemSchema": item}}
    success = {"description": "The completions, or with `stream` their events", "content": events}
    return {200: success, **ERRORS}


COMPLETION_RESPONSES = _with_stream(CompletionResponse)
CHAT_RESPONSES = _with_stream(ChatChunk)


def generation_router(backend: GenerationBackend, responder: Responder) -> APIRouter:
    """All routes that need a token."""
    router = APIRouter(prefix="/v1", tags=["generation"], route_class=JsonRoute)

    @cache
    def token_text(model_id: str) -> TokenText:
        return TokenText(backend.models[model_id].generator.tokenizer)

    @router.post("/completions", response_model=CompletionResponse, responses=COMPLETION_RESPONSES)
    async def completions(body: CompletionRequest, caller: Author, request: Request) -> Response:
        """Continues prompts."""
        responder.check_queue(backend.model(body.model))
        plan = await plan_completion(body, caller, backend)
        form = CompletionFormat(plan, int(time.time()), token_text(body.model), echo=bool(body.echo))
        return await responder.respond(plan, form, caller, request)

    @router.post("/chat/completions", response_model=ChatResponse, responses=CHAT_RESPONSES)
    async def chat_completions(body: ChatRequest, caller: Author, request: Request) -> Response:
        """Writes the assistant's next message."""
        responder.check_queue(backend.model(body.model))
        plan = await plan_chat(body, caller, backend)
        form = ChatFormat(plan, int(time.time()), token_text(body.model))
        return await responder.respond(plan, form, caller, request)

    @router.get("/models", responses=_errors(401, 403, 429, 503))
    async def models(caller: Author) -> ModelList:
        """The models, and the watermarks that the caller's keys give them."""
        return ModelList(data=[describe(*item, caller.tenant, backend) for item in backend.models.items()])

    @router.get("/models/{model_id:path}", responses=_errors(401, 403, 404, 429, 503))
    async def model(model_id: str, caller: Author) -> Model:
        """One model."""
        return describe(model_id, backend.model(model_id), caller.tenant, backend)

    return router
