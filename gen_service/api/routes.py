"""The routes of the generation service: OpenAI's, ours and vLLM's for tokens.

They take a body as `JsonBodyMiddleware` has parsed it, and name or leave out its unknown fields.
"""

import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.backend import GenerationBackend, ServedModel
from ttmark.gen_service.api.format import ChatFormat, CompletionFormat
from ttmark.gen_service.api.key_selection import usable_keys
from ttmark.gen_service.api.pipeline import answer_with_text
from ttmark.gen_service.api.prompts import chat_prompt, check_text
from ttmark.gen_service.api.readings import answer_with_readings
from ttmark.gen_service.api.request_plan import plan_chat, plan_completion, plan_response
from ttmark.gen_service.api.responses_format import ResponsesFormat
from ttmark.gen_service.api.tools import tool_use
from ttmark.gen_service.api.verifier import Verifier
from ttmark.gen_service.api.watermark_report import WARNING, described_headers
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import require
from ttmark.shared.http.request_body import PARSED_JSON
from ttmark.shared.http.service_errors import BadRequest, ModelNotFound
from ttmark.shared.manifests.wrapper import without_wrappers
from ttmark.shared.schemas.chat import ChatChunk, ChatRequest, ChatResponse
from ttmark.shared.schemas.completions import CompletionRequest, CompletionResponse
from ttmark.shared.schemas.fields import ErrorEnvelope
from ttmark.shared.schemas.models import (
    DetokenizeRequest,
    DetokenizeResponse,
    Model,
    ModelList,
    ModelProfile,
    TokenizeRequest,
    TokenizeResponse,
)
from ttmark.shared.schemas.readings import ReadingsRequest, ReadingsResponse
from ttmark.shared.schemas.responses import RESPONSE_EVENTS, ResponseObject
from ttmark.shared.schemas.responses_request import ResponsesRequest
from ttmark.shared.schemas.unknown_fields import UnknownField, unknown_fields
from ttmark.shared.schemas.verification import VerificationRequest, VerificationResponse

Handle = Callable[[Request], Coroutine[Any, Any, Response]]
_MOST_NAMED = 20


class _ParsedRequest(Request):
    async def json(self) -> Any:
        return self.scope["state"][PARSED_JSON]


class JsonRoute(APIRoute):
    """For `APIRouter(route_class=JsonRoute)`: a body with an unknown field is refused."""

    def get_route_handler(self) -> Handle:
        """Gives the framework's handler a request that knows its body already, and names an unknown field
        before anything else that is wrong with it."""
        handle = super().get_route_handler()

        async def handle_parsed(request: Request) -> Response:
            try:
                return await handle(_ParsedRequest(request.scope, request.receive))
            except RequestValidationError:
                unknown = next(self.unknown(request), None)
                if unknown is None:
                    raise
                raise BadRequest(unknown.message, param=unknown.path) from None

        return handle_parsed

    def unknown(self, request: Request) -> Iterator[UnknownField]:
        """Fields of its body that nobody knows."""
        if self.body_field is not None:
            body: Any = self.body_field.field_info.annotation
            yield from unknown_fields(body, request.scope["state"].get(PARSED_JSON))


class IgnoringRoute(JsonRoute):
    """Leaves unknown fields aside and lists them in a header; those in parts of our own are refused."""

    def get_route_handler(self) -> Handle:
        """Takes the fields out of the body first."""
        handle = super().get_route_handler()

        async def ignore_by_name(request: Request) -> Response:
            ignored = [unknown for unknown in self.unknown(request) if not unknown.closed]
            for unknown in ignored:
                del unknown.holder[unknown.name]
            response = await handle(request)
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


Caller = Annotated[Principal, Depends(require(Scope.GENERATE))]


def tokenizer_router(backend: GenerationBackend, route: type[JsonRoute]) -> APIRouter:
    """Both of them; they take no part of the engine's time."""
    router = APIRouter(tags=["generation"], route_class=route)

    @router.post("/tokenize", responses=ERRORS)
    async def tokenize(body: TokenizeRequest, _: Caller) -> TokenizeResponse:
        """Says which tokens a text or a conversation is to the model."""
        model = _model(body.model, backend)
        tokens = await _tokens(body, model, backend)
        names = model.generator.tokenizer.backend.id_to_token
        return TokenizeResponse(
            count=len(tokens),
            max_model_len=model.generator.context_length,
            tokens=list(tokens),
            token_strs=[names(token) or "" for token in tokens] if body.return_token_strs else None,
        )

    @router.post("/detokenize", responses=ERRORS)
    async def detokenize(body: DetokenizeRequest, _: Caller) -> DetokenizeResponse:
        """Says which text tokens are."""
        model = _model(body.model, backend)
        check_text(body.tokens, model, "tokens")
        decode = model.generator.tokenizer.backend.decode
        text = await run_in_threadpool(decode, body.tokens, skip_special_tokens=False)
        return DetokenizeResponse(prompt=text)

    return router


def _model(model_id: str | None, backend: GenerationBackend) -> ServedModel:
    if model_id is None and len(backend.models) > 1:
        raise ModelNotFound("No model is named, and several are served.", param="model")
    return backend.model(next(iter(backend.models)) if model_id is None else model_id)


async def _tokens(body: TokenizeRequest, model: ServedModel, backend: GenerationBackend) -> Sequence[int]:
    if body.messages is None:
        prompt = without_wrappers(body.prompt or "")
        check_text(prompt, model, "prompt")
        encode = model.generator.tokenizer.backend.encode
        special = body.add_special_tokens is not False
        encoding = await run_in_threadpool(encode, prompt, add_special_tokens=special)
        return list(encoding.ids)
    if body.add_special_tokens:
        raise BadRequest(
            "add_special_tokens: not available together with messages; the chat template sets them itself.",
            param="add_special_tokens",
        )
    tools = tool_use(body.tools, None, None, model)
    read = await chat_prompt(
        body.messages,
        model,
        field="messages",
        label=backend.labels.label,
        tools=tools.shown if tools else (),
        variables=body.chat_template_kwargs or {},
        opens_answer=body.add_generation_prompt is not False,
    )
    return read.token_ids


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


def _with_stream(
    description: str, *payloads: type[BaseModel], ends_with: str | None = None
) -> dict[int | str, dict[str, Any]]:
    content = event_content(*payloads, ends_with=ends_with)
    return {200: {"description": description, "content": content, "headers": described_headers()}, **ERRORS}


_CHOICES = "The completions, or with `stream` their events"
COMPLETION_RESPONSES = _with_stream(_CHOICES, CompletionResponse, ErrorEnvelope, ends_with="[DONE]")
CHAT_RESPONSES = _with_stream(_CHOICES, ChatChunk, ErrorEnvelope, ends_with="[DONE]")
RESPONSES_RESPONSES = _with_stream("The response, or with `stream` its events", *RESPONSE_EVENTS)
EVENT_PAYLOADS: tuple[type[BaseModel], ...] = (CompletionResponse, ChatChunk, ErrorEnvelope, *RESPONSE_EVENTS)

_GENERATE = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/tokenize", "/detokenize")
BODY_SCOPES = dict.fromkeys(_GENERATE, Scope.GENERATE) | {
    "/v1/watermark/verify": Scope.DETECT_EVIDENCE,
    "/v1/readings": Scope.READ,
}
"""What callers need before their body is read; no other paths outside of `/v1/` need a token."""


def generation_router(books: Accounting) -> APIRouter:
    """All routes that need a token."""
    backend, verifier = books.backend, Verifier(books)
    route = IgnoringRoute if backend.ignore_unknown_fields else JsonRoute
    whole = APIRouter()
    router = APIRouter(prefix="/v1", tags=["generation"], route_class=route)

    @router.post("/completions", response_model=CompletionResponse, responses=COMPLETION_RESPONSES)
    async def completions(body: CompletionRequest, caller: Caller, request: Request) -> Response:
        """Continues prompts."""
        return await answer_with_text(books, body, caller, request, plan_completion, CompletionFormat)

    @router.post("/chat/completions", response_model=ChatResponse, responses=CHAT_RESPONSES)
    async def chat_completions(body: ChatRequest, caller: Caller, request: Request) -> Response:
        """Writes the assistant's next message."""
        return await answer_with_text(books, body, caller, request, plan_chat, ChatFormat)

    @router.post("/responses", response_model=ResponseObject, responses=RESPONSES_RESPONSES)
    async def responses(body: ResponsesRequest, caller: Caller, request: Request) -> Response:
        """Answers a conversation; nothing is stored."""
        return await answer_with_text(books, body, caller, request, plan_response, ResponsesFormat)

    @router.post("/watermark/verify", responses=ERRORS)
    async def verify(body: VerificationRequest, caller: Auditor, request: Request) -> VerificationResponse:
        """Looks for a mark in a text of this model, with the model's own uncertainty as weights."""
        return await verifier.answer(body, caller, request)

    @router.post("/readings", responses=ERRORS)
    async def readings(body: ReadingsRequest, caller: Reads, request: Request) -> ReadingsResponse:
        """Says how likely the model finds each part of texts."""
        return await answer_with_readings(books, body, caller, request)

    @router.get("/models", responses=_errors(401, 403, 429, 503))
    async def models(caller: Caller) -> ModelList:
        """The models, and the watermarks that the caller's keys give them."""
        return ModelList(data=[describe(*item, caller.tenant, backend) for item in backend.models.items()])

    @router.get("/models/{model_id:path}", responses=_errors(401, 403, 404, 429, 503))
    async def model(model_id: str, caller: Caller) -> Model:
        """One model."""
        return describe(model_id, backend.model(model_id), caller.tenant, backend)

    whole.include_router(router)
    whole.include_router(tokenizer_router(backend, route))
    return whole
