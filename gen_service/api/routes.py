"""The routes of the generation service: OpenAI's, ours and vLLM's for tokens.

They take a body as `BodyMiddleware` has parsed it, and name or leave out its unknown fields.
"""

import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.described import (
    CHAT_RESPONSES,
    COMPLETION_RESPONSES,
    errors,
)
from ttmark.gen_service.api.format import ChatFormat, CompletionFormat
from ttmark.gen_service.api.long_bodies import run_long, valid
from ttmark.gen_service.api.pipeline import answer_with_text
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.key_selection import usable_keys
from ttmark.gen_service.api.plan.request_plan import plan_chat, plan_completion
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.api.plan.watermark_report import WARNING
from ttmark.gen_service.api.tokenizer_routes import tokenizer_router
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import require
from ttmark.shared.http.request_body import BODY_BYTES, LONG_BODY_BYTES, PARSED_BODY
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.generation.chat import ChatRequest, ChatResponse
from ttmark.shared.schemas.generation.completions import CompletionRequest, CompletionResponse
from ttmark.shared.schemas.generation.models import (
    Model,
    ModelList,
    ModelProfile,
)
from ttmark.shared.schemas.unknown_fields import UnknownField, unknown_fields

T = TypeVar("T")
Handle = Callable[[Request], Coroutine[Any, Any, Response]]
_MOST_NAMED = 20


class _ParsedRequest(Request):
    valid: Any = None

    async def json(self) -> Any:
        return self.scope["state"][PARSED_BODY] if self.valid is None else self.valid


async def _done(request: Request, work: Callable[[], T]) -> T:
    """The result of work that goes through the whole body."""
    size = request.scope["state"].get(BODY_BYTES, 0)
    return work() if size <= LONG_BODY_BYTES else await run_long(request, size, work)


class JsonRoute(APIRoute):
    """For `APIRouter(route_class=JsonRoute)`: a body with an unknown field is refused."""

    def get_route_handler(self) -> Handle:
        """Gives the framework's handler a request that knows its body already, and names an unknown field
        before anything else that is wrong with it."""
        handle = super().get_route_handler()
        body: Any = self.body_field and self.body_field.field_info.annotation
        adapter = body and TypeAdapter(body)

        async def handle_parsed(request: Request) -> Response:
            parsed = _ParsedRequest(request.scope, request.receive)
            try:
                if adapter and request.scope["state"].get(BODY_BYTES, 0) > LONG_BODY_BYTES:
                    parsed.valid = await _done(request, partial(valid, adapter, request))
                return await handle(parsed)
            except RequestValidationError:
                unknown = await _done(request, lambda: next(self.unknown(request), None))
                if unknown is None:
                    raise
                raise BadRequest(unknown.message, param=unknown.path) from None

        return handle_parsed

    def unknown(self, request: Request) -> Iterator[UnknownField]:
        if self.body_field is not None:
            body: Any = self.body_field.field_info.annotation
            yield from unknown_fields(body, request.scope["state"].get(PARSED_BODY))


class IgnoringRoute(JsonRoute):
    """Leaves unknown fields aside and lists them in a header; those in parts of our own are refused."""

    def get_route_handler(self) -> Handle:
        """Takes the fields out of the body first."""
        handle = super().get_route_handler()

        async def ignore_by_name(request: Request) -> Response:
            found = await _done(request, lambda: list(self.unknown(request)))
            ignored = [unknown for unknown in found if not unknown.closed]
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


Caller = Annotated[Principal, Depends(require(Scope.GENERATE))]


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


_GENERATE = ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize")
BODY_SCOPES = dict.fromkeys(_GENERATE, Scope.GENERATE)
"""What callers need before their body is read; no other paths outside of `/v1/` need a token."""


def generation_router(books: Accounting, route: type[JsonRoute]) -> APIRouter:
    """The core's routes that need a token."""
    backend = books.backend
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

    @router.get("/models", responses=errors(401, 403, 429, 503))
    async def models(caller: Caller) -> ModelList:
        """The models, and the watermarks that the caller's keys give them."""
        return ModelList(data=[describe(*item, caller.tenant, backend) for item in backend.models.items()])

    @router.get("/models/{model_id:path}", responses=errors(401, 403, 404, 429, 503))
    async def model(model_id: str, caller: Caller) -> Model:
        """One model."""
        return describe(model_id, backend.model(model_id), caller.tenant, backend)

    whole.include_router(router)
    whole.include_router(tokenizer_router(backend, route))
    return whole
