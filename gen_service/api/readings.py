"""Readings: the engine says how likely it finds each token of texts that it did not write."""

import asyncio
import hashlib
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.backend import Generator
from ttmark.gen_service.api.generation_metrics import engine_errors_as_answers
from ttmark.gen_service.decoding.filtered_tokens import FilterParams, Floats
from ttmark.gen_service.engine import ReadingRequest
from ttmark.shared.access.scopes import Principal
from ttmark.shared.byte_reading import LEAST_LOGPROB, ByteReading
from ttmark.shared.http.request_body import unless_disconnected
from ttmark.shared.http.service_errors import BadRequest, NotReady, ServiceError, TooMuchWork
from ttmark.shared.observability.tracing import request_id
from ttmark.shared.schemas.verification import Reading, ReadingsRequest, ReadingsResponse
from ttmark.shared.tokenization import EncodedText, Window, byte_ends, reading_windows

Result = TypeVar("Result")

_AT_ONCE = 4
"""Windows of one request that the engine has in hand at the same time."""
_LONGEST_WINDOW = 2_048
_AS_IT_IS = FilterParams()


async def answer_with_readings(
    books: Accounting, body: ReadingsRequest, caller: Principal, request: Request
) -> ReadingsResponse:
    """A reading of each text; all work ends when the client goes.

    Raises:
        ServiceError: the request cannot be served, or the engine refused or failed it.
        ClientDisconnect: the client has gone.
    """
    began, outcome = time.perf_counter(), "cancelled"
    try:
        response = await _answer(books, body, caller, request)
        outcome = "read"
    except ServiceError as error:
        outcome = "failed" if error.status >= 500 else "rejected"
        raise
    finally:
        books.metrics.texts_read(outcome, len(body.texts), time.perf_counter() - began)
    return response


async def _answer(
    books: Accounting, body: ReadingsRequest, caller: Principal, request: Request
) -> ReadingsResponse:
    model = books.backend.model(body.model)
    if not model.generator.ready:
        raise NotReady("The model is not ready.", retry_after=1)
    encoded = await run_in_threadpool(_encoded, body.texts, model.generator)
    tokens = sum(len(text.ids) for text in encoded)
    limit = books.backend.limits.max_read_tokens
    if tokens > limit:
        raise TooMuchWork(
            f"The texts have {tokens} tokens together; the limit is {limit}. Send fewer at a time.",
            param="texts",
        )
    await books.grant(caller, tokens)
    books.metrics.tokens(read=tokens)
    identifier = request_id(request.scope)
    work = _read(encoded, model.generator, caller, identifier)
    said = await unless_disconnected(request.receive, work)
    readings = await run_in_threadpool(_readings, body.texts, encoded, said, model.generator)
    books.record("text.read", caller, request, tokens=tokens)
    return ReadingsResponse(model=body.model, readings=readings, tokens=tokens, request_id=identifier)


async def _read(
    encoded: Sequence[EncodedText], generator: Generator, caller: Principal, identifier: str
) -> list[Floats]:
    """Log-probabilities of each text's tokens."""
    start = () if generator.start_token_id is None else (generator.start_token_id,)
    size = min(_LONGEST_WINDOW, generator.context_length) - len(start)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def read(ids: Sequence[int], window: Window) -> Floats:
        text = tuple(ids[window.start : window.end])
        if len(start) + len(text) < 2:
            return np.zeros(len(text))
        async with turns:
            with engine_errors_as_answers():
                wanted = ReadingRequest(identifier, start, text, _AS_IT_IS, caller.tenant)
                return (await generator.read(wanted))[window.kept - window.start :]

    parts = [(text, list(reading_windows(len(text.ids), size))) for text in encoded]
    found = iter(await _all([read(text.ids, window) for text, windows in parts for window in windows]))
    return [np.concatenate([next(found) for _ in windows]) for _, windows in parts]


async def _all(works: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results; the first failure ends the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _encoded(texts: Sequence[str], generator: Generator) -> list[EncodedText]:
    encoded = [generator.tokenizer.encode_with_offsets(text) for text in texts]
    for index, text in enumerate(encoded):
        if not text.ids:
            raise BadRequest(f"texts[{index}]: holds no tokens.", param=f"texts[{index}]")
    return encoded


def _readings(
    texts: Sequence[str], encoded: Sequence[EncodedText], said: Sequence[Floats], generator: Generator
) -> list[Reading]:
    readings = []
    for text, tokens, values in zip(texts, encoded, said, strict=True):
        found = ByteReading.of_tokens(byte_ends(text, tokens.offsets), values)
        logprobs: list[float | None] = np.maximum(found.logprobs, LEAST_LOGPROB).tolist()
        if generator.start_token_id is None:
            logprobs[:1] = [None]
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        starts, ends = found.starts.tolist(), found.ends.tolist()
        readings.append(Reading(sha256=sha256, starts=starts, ends=ends, logprobs=logprobs))
    return readings
