"""Readings: the engine says how likely it finds each token of texts: after nothing, or as of an origin."""

import asyncio
import hashlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.generation_metrics import engine_errors_as_answers
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.prompts import chat_prompt, check_text, context_limit, plain_prompts
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.decoding.filtered_tokens import FilterParams, Floats
from ttmark.gen_service.decoding.request import ReadingRequest
from ttmark.shared.access.scopes import Principal
from ttmark.shared.byte_reading import (
    LEAST_LOGPROB,
    ByteReading,
    Ints,
    Window,
    byte_ends,
    content_bytes,
    id_ends,
    reading_windows,
)
from ttmark.shared.http.request_body import unless_disconnected
from ttmark.shared.http.request_id import request_id
from ttmark.shared.http.service_errors import (
    BadRequest,
    ContextLengthExceeded,
    NotReady,
    ServiceError,
    TooMuchWork,
)
from ttmark.shared.languages.words import counted
from ttmark.shared.schemas.generation.origin import Origin
from ttmark.shared.schemas.generation.readings import Reading, ReadingsRequest, ReadingsResponse
from ttmark.shared.tokenization import TooManyTokens

Result = TypeVar("Result")

_AT_ONCE = 4
"""Windows of one request that the engine has in hand at the same time."""
_LONGEST_WINDOW = 2_048
_LONG_TEXT = 131_072
_AS_IT_IS = FilterParams()


class _Text(NamedTuple):
    """A text as the model reads it, and where its tokens end in its bytes [tokens]."""

    ids: Sequence[int]
    ends: Ints


@dataclass(frozen=True, slots=True)
class _Supposed:
    """What the texts are read as.

    Attributes:
        before: what stands before each of them; with `is_prompt` it is what they continue.
    """

    before: tuple[int, ...]
    is_prompt: bool = False
    filters: FilterParams = _AS_IT_IS
    repetition_penalty: float = 1.0

    @classmethod
    async def of(cls, asked: Origin, model: ServedModel, backend: GenerationBackend) -> "_Supposed":
        """As the request says; without a word of it as the model itself says them."""
        start, prompt = model.generator.start_token_id, None
        before: tuple[int, ...] = () if start is None else (start,)
        if asked.messages is not None:
            prompt = await chat_prompt(
                asked.messages,
                model,
                field="messages",
                earlier_answer=backend.earlier_answer,
                variables=asked.chat_template_kwargs or {},
            )
        elif asked.prompt is not None:
            (prompt,) = await plain_prompts([asked.prompt], model)
        if not asked.has_origin:
            return cls(before)
        sampling = model.sampling.under(asked)
        penalty = sampling.pop("repetition_penalty")
        before = before if prompt is None else prompt.token_ids
        return cls(before, prompt is not None, FilterParams(**sampling), penalty)


async def answer_with_readings(
    books: Accounting, body: ReadingsRequest, caller: Principal, request: Request
) -> ReadingsResponse:
    """A reading of each text; what it continues counts with each; all work ends when the client goes.

    Raises:
        ServiceError: the request cannot be served, or the engine refused or failed it.
        ClientDisconnect: the client has gone.
    """
    outcome = "cancelled"
    try:
        response = await _answer(books, body, caller, request)
        outcome = "read"
    except ServiceError as error:
        outcome = "failed" if error.status >= 500 else "rejected"
        raise
    finally:
        books.metrics.texts_read(outcome, len(body.texts))
    return response


async def _answer(
    books: Accounting, body: ReadingsRequest, caller: Principal, request: Request
) -> ReadingsResponse:
    model = books.backend.model(body.model)
    if not model.generator.ready:
        raise NotReady("The model is not ready.", retry_after=1)
    supposed = await _Supposed.of(body, model, books.backend)
    limit = books.backend.limits.max_read_tokens
    try:
        encoded = await run_in_threadpool(_encoded, body.texts, model, limit)
    except TooManyTokens as error:
        raise TooMuchWork(f"A text has {error}, the limit. Send fewer at a time.", param="texts") from None
    tokens = sum(len(text.ids) for text in encoded)
    if supposed.is_prompt:
        _check_context(encoded, len(supposed.before), model.generator.context_length)
        tokens += len(encoded) * len(supposed.before)
    if tokens > limit:
        raise TooMuchWork(
            f"The texts have {tokens} tokens together; the limit is {limit}. Send fewer at a time.",
            param="texts",
        )
    await books.grant(caller, tokens)
    request.scope["state"]["model"] = body.model
    books.metrics.tokens(read=tokens)
    identifier = request_id(request.scope)
    work = _read(encoded, supposed, model, caller, identifier)
    said = await unless_disconnected(request.receive, work)
    first_is_said = bool(supposed.before)
    readings = await run_in_threadpool(_readings, body.texts, encoded, said, first_is_said)
    books.record("text.read", caller, request, tokens=tokens)
    return ReadingsResponse(model=body.model, readings=readings, tokens=tokens, request_id=identifier)


def _check_context(encoded: Sequence[_Text], before: int, limit: int) -> None:
    """Holds each text with what it continues to the model's context: the model wrote it in one."""
    for index, text in enumerate(encoded):
        over = before + len(text.ids) - limit
        if over > 0:
            raise ContextLengthExceeded(
                f"{context_limit(limit)} The text has {len(text.ids)} and what it continues {before}, "
                f"together {counted(over, 'token')} over.",
                param=f"texts[{index}]",
            )


async def _read(
    encoded: Sequence[_Text], supposed: _Supposed, model: ServedModel, caller: Principal, identifier: str
) -> list[Floats]:
    generator, before = model.generator, supposed.before
    longest = generator.context_length
    size = (longest if supposed.is_prompt else min(_LONGEST_WINDOW, longest)) - len(before)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def read(ids: Sequence[int], window: Window) -> Floats:
        text = tuple(ids[window.start : window.end])
        if len(before) + len(text) < 2:
            return np.zeros(len(text))
        wanted = ReadingRequest(
            identifier, before, text, supposed.filters, caller.tenant, supposed.repetition_penalty
        )
        async with turns:
            with engine_errors_as_answers():
                return (await generator.read(wanted))[window.kept - window.start :]

    parts = [(text, list(reading_windows(len(text.ids), size))) for text in encoded]
    found = iter(await _all([read(text.ids, window) for text, windows in parts for window in windows]))
    return [np.concatenate([next(found) for _ in windows]) for _, windows in parts]


async def _all(works: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _encoded(texts: Sequence[str | list[int]], model: ServedModel, limit: int) -> list[_Text]:
    encoded = []
    for index, text in enumerate(texts):
        if isinstance(text, str):
            if len(text) > _LONG_TEXT:
                model.generator.tokenizer.encode(text, limit)  # reads no more of it than that
            found = model.generator.tokenizer.encode_with_offsets(text)
            encoded.append(_Text(found.ids, byte_ends(text, found.offsets)))
        else:
            check_text(text, model, f"texts[{index}]")
            encoded.append(_Text(text, id_ends(len(text))))
        if not encoded[-1].ids:
            raise BadRequest(f"texts[{index}]: holds no tokens.", param=f"texts[{index}]")
    return encoded


def _readings(
    texts: Sequence[str | list[int]],
    encoded: Sequence[_Text],
    said: Sequence[Floats],
    first_is_said: bool,
) -> list[Reading]:
    readings = []
    for text, tokens, values in zip(texts, encoded, said, strict=True):
        found = ByteReading.of_tokens(tokens.ends, values)
        logprobs: list[float | None] = np.maximum(found.logprobs, LEAST_LOGPROB).tolist()
        if not first_is_said:
            logprobs[:1] = [None]
        sha256 = hashlib.sha256(content_bytes(text if isinstance(text, str) else tuple(text))).hexdigest()
        starts, ends = found.starts.tolist(), found.ends.tolist()
        # What we made ourselves is not validated: a long list keeps the interpreter from other threads.
        reading = {"sha256": sha256, "starts": starts, "ends": ends, "logprobs": logprobs}
        readings.append(Reading.model_construct(**reading))
    return readings
