"""The OpenAI routes, and models as they show them."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel

from ttmark.gen_service.api.backend import GenerationBackend, ServedModel
from ttmark.gen_service.api.format import ChatFormat, CompletionFormat
from ttmark.gen_service.api.json_route import IgnoringRoute, JsonRoute, event_content
from ttmark.gen_service.api.key_selection import usable_keys
from ttmark.gen_service.api.pipeline import Pipeline
from ttmark.gen_service.api.plan import plan_chat, plan_completion, plan_response
from ttmark.gen_service.api.readings import Reader
from ttmark.gen_service.api.responses_format import ResponsesFormat
from ttmark.gen_service.api.tokenize import tokenizer_router
from ttmark.gen_service.api.verification import Verifier
from ttmark.gen_service.api.watermark_block import described_headers
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import require
from ttmark.shared.schemas.chat import ChatChunk, ChatRequest, ChatResponse
from ttmark.shared.schemas.completions import CompletionRequest, CompletionResponse
from ttmark.shared.schemas.fields import ErrorEnvelope
from ttmark.shared.schemas.models import Model, ModelList, ModelProfile
from ttmark.shared.schemas.responses import RESPONSE_EVENTS, ResponseObject
from ttmark.shared.schemas.responses_request import ResponsesRequest
from ttmark.shared.schemas.verification import (
    ReadingsRequest,
    ReadingsResponse,
    VerificationRequest,
    VerificationResponse,
)


def describe(model_id: str, model: ServedModel, tenant: str, backend: GenerationBackend) -> Model:
    """A model, with the profiles and keys that the tenant has for it."""
    generator = model.generator
    profiles: dict[str, ModelProfile] = {}
    for key in usable_keys(tenant, backend, generator):
        profile = key.profile
        entry = profiles.setdefault(
            profile.profile_id,
            ModelProfile(
                profile=profile.profile_id,
                scheme=profile.scheme,
                block_size=profile.block_size,
                payloads=profile.pool if profile.payloads else None,
                key_ids=[],
            ),
        )
        entry.key_ids.append(key.key_id)
    return Model(
        id=model_id,
        created=model.created,
        context_length=generator.context_length,
        tokenizer_fingerprint=generator.tokenizer.fingerprint,
        chat=model.chat_template is not None,
        sampling=model.sampling,
        profiles=list(profiles.values()),
    )


Caller = Annotated[Principal, Depends(require(Scope.GENERATE))]
Reads = Annotated[Principal, Depends(require(Scope.READ))]
Auditor = Annotated[Principal, Depends(require(Scope.DETECT_EVIDENCE))]

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


def _with_stream(chunk: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    content = event_content(chunk, ErrorEnvelope, ends_with="[DONE]")
    return {
        200: {
            "description": "The completions, or with `stream` their events",
            "content": content,
            "headers": described_headers(),
        },
        **ERRORS,
    }


COMPLETION_RESPONSES = _with_stream(CompletionResponse)
CHAT_RESPONSES = _with_stream(ChatChunk)
RESPONSES_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The response, or with `stream` its events",
        "content": event_content(*RESPONSE_EVENTS),
        "headers": described_headers(),
    },
    **ERRORS,
}
EVENT_PAYLOADS: tuple[type[BaseModel], ...] = (CompletionResponse, ChatChunk, ErrorEnvelope, *RESPONSE_EVENTS)

_GENERATE = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/tokenize", "/detokenize")
BODY_SCOPES = dict.fromkeys(_GENERATE, Scope.GENERATE) | {
    "/v1/watermark/verify": Scope.DETECT_EVIDENCE,
    "/v1/readings": Scope.READ,
}
"""What callers need before their body is read; no other paths outside of `/v1/` need a token."""


def generation_router(
    backend: GenerationBackend, pipeline: Pipeline, verifier: Verifier, reader: Reader
) -> APIRouter:
    """All routes that need a token."""
    route = IgnoringRoute if backend.ignore_unknown_fields else JsonRoute
    whole = APIRouter()
    router = APIRouter(prefix="/v1", tags=["generation"], route_class=route)

    @router.post("/completions", response_model=CompletionResponse, responses=COMPLETION_RESPONSES)
    async def completions(body: CompletionRequest, caller: Caller, request: Request) -> Response:
        """Continues prompts."""
        return await pipeline.answer(body, caller, request, plan_completion, CompletionFormat)

    @router.post("/chat/completions", response_model=ChatResponse, responses=CHAT_RESPONSES)
    async def chat_completions(body: ChatRequest, caller: Caller, request: Request) -> Response:
        """Writes the assistant's next message."""
        return await pipeline.answer(body, caller, request, plan_chat, ChatFormat)

    @router.post("/responses", response_model=ResponseObject, responses=RESPONSES_RESPONSES)
    async def responses(body: ResponsesRequest, caller: Caller, request: Request) -> Response:
        """Answers a conversation; nothing is stored."""
        return await pipeline.answer(body, caller, request, plan_response, ResponsesFormat)

    @router.post("/watermark/verify", responses=ERRORS)
    async def verify(body: VerificationRequest, caller: Auditor, request: Request) -> VerificationResponse:
        """Looks for a mark in a text of this model, with the model's own uncertainty as weights."""
        return await verifier.answer(body, caller, request)

    @router.post("/readings", responses=ERRORS)
    async def readings(body: ReadingsRequest, caller: Reads, request: Request) -> ReadingsResponse:
        """Says how likely the model finds each part of texts that it did not write."""
        return await reader.answer(body, caller, request)

    @router.get("/models", responses=_errors(401, 403, 429, 503))
    async def models(caller: Caller) -> ModelList:
        """The models, and the watermarks that the caller's keys give them."""
        return ModelList(data=[describe(*item, caller.tenant, backend) for item in backend.models.items()])

    @router.get("/models/{model_id:path}", responses=_errors(401, 403, 404, 429, 503))
    async def model(model_id: str, caller: Caller) -> Model:
        """One model."""
        return describe(model_id, backend.model(model_id), caller.tenant, backend)

    whole.include_router(router)
    whole.include_router(tokenizer_router(backend, route, ERRORS))
    return whole
