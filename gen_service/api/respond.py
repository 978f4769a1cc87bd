"""From a plan to a response, whole or streamed."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

import structlog
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from gen_service.api.allowance import TokenAllowance, metered
from gen_service.api.backend import ServedModel
from gen_service.api.disconnect import unless_disconnected
from gen_service.api.event_stream import DONE, KEEP_ALIVE, EventStream, event
from gen_service.api.merge import Piece, merge
from gen_service.api.observer import Observer
from gen_service.api.outcome import Outcomes, gather
from gen_service.api.plan import Plan
from gen_service.api.watermark_block import watermark_block
from shared.http.error_format import openai_envelope
from shared.http.errors import InternalError, ServiceError
from shared.http.request_id import request_id
from shared.keys.audit import AuditEvent, AuditSink
from shared.keys.scopes import Principal
from shared.schemas.errors import ErrorEnvelope
from shared.schemas.sampling import Usage
from shared.schemas.watermark_block import WatermarkBlock


class Format(Protocol):
    """The shape of one API's responses."""

    def whole(self, outcomes: Outcomes, usage: Usage, watermark: WatermarkBlock) -> BaseModel:
        """The response that is not streamed."""

    def chunk(self, piece: Piece, watermark: WatermarkBlock | None) -> BaseModel:
        """An event of a stream."""

    def last_chunk(self, usage: Usage, watermark: WatermarkBlock) -> BaseModel:
        """The event after the last piece, with the token counts."""


class Responder:
    """Runs plans and answers with what comes of them."""

    def __init__(
        self, observer: Observer, audit: AuditSink, allowance: TokenAllowance, *, keep_alive_seconds: float
    ) -> None:
        self._observer = observer
        self._metrics = observer.metrics
        self._audit = audit
        self._allowance = allowance
        self._keep_alive_seconds = keep_alive_seconds
        self._log = structlog.get_logger("ttmark.generation")

    def check_queue(self, model: ServedModel) -> None:
        """Refuses what would find the model's queue full, before anything is spent on the request.

        Raises:
            ServiceError: the queue is full.
        """
        self._observer.check_queue(model.generator)

    async def respond(self, plan: Plan, form: Format, caller: Principal, request: Request) -> Response:
        """The response to a plan; its completions are cancelled when the client goes.

        Raises:
            ServiceError: the caller's allowance does not suffice, or the engine refused or failed a
                completion before anything was sent.
            ClientDisconnect: the client has gone.
        """
        await self._allowance.take(caller, plan.most_tokens)
        self._metrics.tokens(prompt=plan.prompt_tokens)
        use = _key_use(plan, caller, request)
        self._audit(use)

        def ended(tokens: int) -> None:
            self._allowance.settle(caller, granted=plan.most_tokens, used=plan.prompt_tokens + tokens)
            self._audit(replace(use, action="key.generated", tokens=tokens))

        completions = merge(
            [self._observer.observe(plan.model.generator, each) for each in plan.requests],
            idle_seconds=self._keep_alive_seconds,
        )
        events = metered(completions, ended)
        if plan.stream:
            # A refusal by the engine comes at once, while the answer can still be an HTTP error.
            first = await unless_disconnected(request.receive, _next(events))
            return EventStream(self._stream(plan, form, first, events), source=events)
        outcomes = await unless_disconnected(request.receive, gather(events, len(plan.requests)))
        body = form.whole(outcomes, _usage(plan, outcomes), self._finish(plan, outcomes))
        return Response(body.model_dump_json(), media_type="application/json")

    async def _stream(
        self, plan: Plan, form: Format, first: Piece | None, events: AsyncGenerator[Piece | None, None]
    ) -> AsyncGenerator[bytes, None]:
        outcomes = Outcomes(len(plan.requests))
        try:
            async with aclosing(_resume(first, events)) as pieces:
                async for piece in pieces:
                    if piece is None:
                        yield KEEP_ALIVE
                        continue
                    outcomes.add(piece)
                    last = outcomes.finished and not plan.include_usage
                    if last or _says_something(piece, plan):
                        yield event(form.chunk(piece, self._finish(plan, outcomes) if last else None))
            if plan.include_usage:
                yield event(form.last_chunk(_usage(plan, outcomes), self._finish(plan, outcomes)))
            yield DONE
        except ServiceError as error:
            yield _error_event(error)
        except Exception:
            self._log.exception("stream_failed", response_id=plan.response_id)
            yield _error_event(InternalError("Something went wrong on our side."))

    def _finish(self, plan: Plan, outcomes: Outcomes) -> WatermarkBlock:
        block = watermark_block(plan.marking, outcomes.reports)
        self._metrics.watermark(block.status, block.watermarked_blocks, block.reasons)
        self._log.info(
            "generated",
            response_id=plan.response_id,
            model=plan.model_id,
            completions=len(plan.requests),
            prompt_tokens=plan.prompt_tokens,
            completion_tokens=outcomes.completion_tokens,
            **block.model_dump(exclude={"blocks"}),
        )
        return block


def _key_use(plan: Plan, caller: Principal, request: Request) -> AuditEvent:
    marking = plan.marking.marking
    return AuditEvent(
        "key.generate",
        key_id=marking.key_id if marking else None,
        version=marking.key_version if marking else None,
        token_id=caller.token_id,
        tenant=caller.tenant,
        request_id=request_id(request.scope),
        reason=plan.marking.unmarked_reason,
        route=request.scope["route"].path,
        tokens=plan.prompt_tokens,
    )


async def _next(events: AsyncGenerator[Piece | None, None]) -> Piece | None:
    return await anext(events)


async def _resume(
    first: Piece | None, events: AsyncGenerator[Piece | None, None]
) -> AsyncGenerator[Piece | None, None]:
    yield first
    async for piece in events:
        yield piece


def _says_something(piece: Piece, plan: Plan) -> bool:
    delta = piece.delta
    return bool(
        delta.text or delta.finish_reason or delta.logprobs or (plan.return_token_ids and delta.token_ids)
    )


def _usage(plan: Plan, outcomes: Outcomes) -> Usage:
    return Usage(
        prompt_tokens=plan.prompt_tokens,
        completion_tokens=outcomes.completion_tokens,
        total_tokens=plan.prompt_tokens + outcomes.completion_tokens,
    )


def _error_event(error: ServiceError) -> bytes:
    return event(ErrorEnvelope.model_validate(openai_envelope(error)))
