"""What a request is granted, uses and leaves behind: allowance, metrics, events, log."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import structlog
from starlette.requests import Request

from ttmark.gen_service.api.generation_metrics import GenerationMetrics
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.request_plan import Plan
from ttmark.gen_service.api.plan.stages import CompletionState
from ttmark.gen_service.api.plan.watermark_report import Log10P, scored, watermark_block
from ttmark.gen_service.decoding.request import Delta, Marking
from ttmark.shared.access.scopes import Principal
from ttmark.shared.events import Event, EventSink
from ttmark.shared.http.request_id import request_id
from ttmark.shared.http.service_errors import InternalError
from ttmark.shared.limits.rate_limits import NOTHING, Grant, TokenAllowance
from ttmark.shared.schemas.generation.sampling import CompletionTokensDetails, PromptTokensDetails, Usage
from ttmark.shared.schemas.generation.watermark_block import WatermarkBlock


@dataclass(frozen=True, slots=True)
class Answer:
    completions: Sequence[CompletionState]
    usage: Usage
    watermark: WatermarkBlock


Step = tuple[Delta, Answer | None]
"""A delta that has been counted; the last of all comes with the answer."""


@dataclass(frozen=True)
class Accounting:
    """Where the use of tokens and keys is granted and recorded."""

    backend: GenerationBackend
    metrics: GenerationMetrics
    audit: EventSink
    allowance: TokenAllowance | None

    async def grant(self, caller: Principal, tokens: int) -> Grant:
        """The most tokens that a request can come to.

        Raises:
            ServiceError: the caller's allowance does not suffice.
        """
        return NOTHING if self.allowance is None else await self.allowance.take(caller, tokens)

    def record(
        self,
        action: str,
        caller: Principal,
        request: Request,
        *,
        marking: Marking | None = None,
        reason: str | None = None,
        tokens: int | None = None,
        rule: str | None = None,
    ) -> Event:
        """Tells what a request of the caller's did."""
        event = Event(
            action,
            key_id=marking.key_id if marking else None,
            version=marking.key_version if marking else None,
            token_id=caller.token_id,
            tenant=caller.tenant,
            request_id=request_id(request.scope),
            reason=reason,
            route=request.scope["route"].path,
            tokens=tokens,
            rule=rule,
        )
        self.audit(event)
        return event

    async def open(self, plan: Plan, caller: Principal, request: Request) -> "Account":
        """Grants the most that the plan can come to, and records the use of its key.

        Raises:
            ServiceError: the caller's allowance does not suffice.
        """
        grant, marking = await self.grant(caller, plan.most_tokens), plan.marking.marking
        self.metrics.tokens(prompt=plan.prompt_tokens)
        self.metrics.policy(plan.marking.rule, "marked" if marking else "unmarked")
        use = self.record(
            "key.generate",
            caller,
            request,
            marking=marking,
            reason=plan.marking.unmarked_reason,
            rule=plan.marking.rule,
            tokens=plan.prompt_tokens,
        )
        return Account(self, plan, caller, use, grant)


class Account:
    def __init__(self, books: Accounting, plan: Plan, caller: Principal, use: Event, grant: Grant) -> None:
        self._states = [CompletionState() for _ in plan.requests]
        self._books, self._rules = books, books.backend
        self._plan = plan
        self._caller = caller
        self._use = use
        self._grant = grant

    async def follow(self, deltas: AsyncGenerator[Delta | None, None]) -> AsyncGenerator[Step | None, None]:
        """Counts deltas as they pass, None for a period of silence; settles however they end.

        Raises:
            InternalError: a completion ended without saying what became of its watermark.
        """
        stages = self._plan.stages
        try:
            async with aclosing(deltas):
                async for delta in deltas:
                    if delta is None:
                        yield None
                        continue
                    state = self._states[delta.index]
                    for stage in stages:
                        delta = stage.read(delta)
                    for stage in stages:
                        delta = stage.put(delta, state.text)
                    state.add(delta)
                    if delta.finish_reason:
                        await self._score(delta.index)
                        for stage in stages:
                            behind = await stage.end(delta.index, state)
                            state.text += behind
                            delta = replace(delta, text=delta.text + behind)
                    ended = all(state.finish_reason for state in self._states)
                    yield delta, self._answer() if ended else None
        finally:
            tokens, allowance = self._completion_tokens, self._books.allowance
            if allowance is not None:
                allowance.settle(self._grant, used=self._plan.prompt_tokens + tokens)
            self._books.audit(Event("key.generated", **{**self._use.said, "tokens": tokens}))

    async def _score(self, index: int) -> None:
        state, request = self._states[index], self._plan.requests[index]
        tokenizer = self._plan.model.generator.tokenizer

        def score() -> Log10P:
            text = state.text
            for stage in self._plan.stages:
                text = stage.held(index, state, text)
            return scored(request, text, tokenizer)

        state.log10_p = await asyncio.to_thread(score)
        tokens = len(state.token_ids) - state.reasoning_tokens
        word = self._rules.receipts.word(state.log10_p)
        self._books.metrics.receipt(self._plan.model_id, tokens, word, state.log10_p)

    def _answer(self) -> Answer:
        plan, tokens, states = self._plan, self._completion_tokens, self._states
        receipts = self._rules.receipts.receipts(
            [state.log10_p for state in states],
            self._caller,
            dictated=any(request.grammar is not None for request in plan.requests),
        )
        reports = [state.report for state in states if state.report is not None]
        if len(reports) != len(states):
            raise InternalError("The state of the watermark is unknown.")
        block = watermark_block(plan.marking, reports, receipts)
        for stage in plan.stages:
            block = block.model_copy(update=stage.notes(plan.response_id))
        self._books.metrics.watermark(block.status, block.watermarked_blocks, block.reasons)
        structlog.get_logger("ttmark.generation").info(
            "generated",
            response_id=plan.response_id,
            model=plan.model_id,
            completions=len(plan.requests),
            prompt_tokens=plan.prompt_tokens,
            completion_tokens=tokens,
            **block.model_dump(exclude={"blocks", "log10_p", "choices"}),
        )
        reasoning_tokens = sum(state.reasoning_tokens for state in states)
        usage = Usage(
            prompt_tokens=plan.prompt_tokens,
            completion_tokens=tokens,
            total_tokens=plan.prompt_tokens + tokens,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=self._cached_tokens()),
            completion_tokens_details=CompletionTokensDetails(reasoning_tokens=reasoning_tokens),
        )
        return Answer(states, usage, block)

    @property
    def _completion_tokens(self) -> int:
        return sum(len(state.token_ids) for state in self._states)

    def _cached_tokens(self) -> int:
        """Prompt tokens that no completion computed; each prompt counts once."""
        reused = [state.reused_tokens for state in self._states]
        choices = self._plan.choices_per_prompt
        return sum(min(reused[first : first + choices]) for first in range(0, len(reused), choices))
