"""`/tokenize` and `/detokenize`: which tokens a text is to a model, and which text tokens are."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from ttmark.gen_service.api.described import ERRORS
from ttmark.gen_service.api.long_bodies import written
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.prompts import chat_prompt, check_text, readable
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.api.plan.stages import open_stages
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import require
from ttmark.shared.http.service_errors import BadRequest, ModelNotFound
from ttmark.shared.schemas.generation.models import (
    DetokenizeRequest,
    DetokenizeResponse,
    TokenizeRequest,
    TokenizeResponse,
)
from ttmark.shared.tokenization import encode_whole

Caller = Annotated[Principal, Depends(require(Scope.GENERATE))]


def tokenizer_router(backend: GenerationBackend, route: type[APIRoute]) -> APIRouter:
    """Both of them; they take no part of the engine's time."""
    router = APIRouter(tags=["generation"], route_class=route)

    @router.post("/tokenize", response_model=TokenizeResponse, responses=ERRORS)
    async def tokenize(body: TokenizeRequest, _: Caller) -> Response:
        """Says which tokens a text or a conversation is to the model."""
        model = _model(body.model, backend)
        tokens = await _tokens(body, model, backend)
        names = model.generator.tokenizer.backend.id_to_token
        return await written(
            lambda: TokenizeResponse(
                count=len(tokens),
                max_model_len=model.generator.context_length,
                tokens=list(tokens),
                token_strs=[names(token) or "" for token in tokens] if body.return_token_strs else None,
            )
        )

    @router.post("/detokenize", response_model=DetokenizeResponse, responses=ERRORS)
    async def detokenize(body: DetokenizeRequest, _: Caller) -> Response:
        """Says which text tokens are."""
        model = _model(body.model, backend)
        check_text(body.tokens, model, "tokens")
        decode = model.generator.tokenizer.backend.decode
        return await written(
            lambda: DetokenizeResponse(prompt=decode(body.tokens, skip_special_tokens=False))
        )

    return router


def _model(model_id: str | None, backend: GenerationBackend) -> ServedModel:
    if model_id is None and len(backend.models) > 1:
        raise ModelNotFound("No model is named, and several are served.", param="model")
    return backend.model(next(iter(backend.models)) if model_id is None else model_id)


async def _tokens(body: TokenizeRequest, model: ServedModel, backend: GenerationBackend) -> Sequence[int]:
    if body.messages is None:
        prompt = readable(body.prompt or "")
        check_text(prompt, model, "prompt")
        special, tokenizer = body.add_special_tokens is not False, model.generator.tokenizer
        encoding = await run_in_threadpool(encode_whole, tokenizer.backend, prompt, special=special)
        return list(encoding.ids)
    if body.add_special_tokens:
        raise BadRequest(
            "add_special_tokens: not available together with messages; the chat template sets them itself.",
            param="add_special_tokens",
        )
    stages = open_stages(backend.hooks, body, body.model or next(iter(backend.models)))
    read = await chat_prompt(
        body.messages,
        model,
        field="messages",
        earlier_answer=backend.earlier_answer,
        tools=[tool for stage in stages for tool in stage.shown],
        variables=body.chat_template_kwargs or {},
        opens_answer=body.add_generation_prompt is not False,
    )
    return read.token_ids
