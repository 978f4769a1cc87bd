"""What a request is granted, uses and leaves behind: allowance, metrics, events, log."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import structlog
from starlette.requests import Request

from ttmark.gen_service.api.backend import GenerationBackend
from ttmark.gen_service.api.generation_metrics import GenerationMetrics
from ttmark.gen_service.api.request_plan import Plan
from ttmark.gen_service.api.watermark_report import scored, watermark_block
from ttmark.gen_service.decoding.marks import without_marks
from ttmark.gen_service.decoding.request import Delta, FinishReason, Marking, MarkReport, TokenLogprob
from ttmark.gen_service.features.structured.reasoning import ReasoningReader
from ttmark.gen_service.features.structured.tool_calls import as_held
from ttmark.shared.access.scopes import Principal
from ttmark.shared.events import Event, EventSink
from ttmark.shared.http.request_id import request_id
from ttmark.shared.http.service_errors import InternalError
from ttmark.shared.limits.allowances import NOTHING, Grant, TokenAllowance
from ttmark.shared.schemas.generation.sampling import CompletionTokensDetails, PromptTokensDetails, Usage
from ttmark.shared.schemas.generation.watermark_block import ManifestNote, WatermarkBlock


@dataclass(slots=True)
class Outcome:
    """One completion as far as it has come.

    Attributes:
        text: the answer, without reasoning.
        manifest: whether its text ends in a signed manifest.
        log10_p: its exact p-value, once it has ended; None where it was not to be marked.
    """

    text: str = ""
    reasoning: str = ""
    reasoning_tokens: int = 0
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    report: MarkReport | None = None
    reused_tokens: int = 0
    manifest: bool = False
    log10_p: float | None = None

    def add(self, delta: Delta) -> None:
        self.text += delta.text
        self.reasoning += delta.reasoning
        self.token_ids += delta.token_ids
        self.logprobs += delta.logprobs or ()
        self.finish_reason = delta.finish_reason
        self.report = delta.report
        self.reused_tokens = delta.reused_tokens


@dataclass(frozen=True, slots=True)
class Answer:
    completions: Sequence[Outcome]
    usage: Usage
    watermark: WatermarkBlock


Step = tuple[Delta, Answer | None]
"""A delta that has been counted; the last of all comes with the answer."""


@dataclass(frozen=True)
class Accounting:
    """Where the use of tokens and keys is granted and recorded.

    Attributes:
        allowance: None: there is no limit.
    """

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
        self._outcomes = [Outcome() for _ in plan.requests]
        self._readers = [ReasoningReader(plan.reasoning) for _ in plan.requests] if plan.reasoning else []
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
        try:
            async with aclosing(deltas):
                async for delta in deltas:
                    if delta is None:
                        yield None
                        continue
                    delta = self._labelled(self._split(delta))
                    self._outcomes[delta.index].add(delta)
                    if delta.finish_reason:
                        await self._score(delta.index)
                        delta = await self._signed(delta)
                    ended = all(outcome.finish_reason for outcome in self._outcomes)
                    yield delta, self._answer() if ended else None
        finally:
            tokens, allowance = self._completion_tokens, self._books.allowance
            if allowance is not None:
                allowance.settle(self._grant, used=self._plan.prompt_tokens + tokens)
            self._books.audit(Event("key.generated", **{**self._use.said, "tokens": tokens}))

    async def _score(self, index: int) -> None:
        outcome = self._outcomes[index]
        tokenizer = self._plan.model.generator.tokenizer
        tools = self._plan.tools
        text = outcome.text if tools is None else as_held(tools, outcome.text)
        outcome.log10_p = await asyncio.to_thread(scored, self._plan.requests[index], text, tokenizer)
        if self._readers:
            count = self._readers[index].count
            outcome.reasoning_tokens = await asyncio.to_thread(count, outcome.token_ids, tokenizer)
        tokens = len(outcome.token_ids) - outcome.reasoning_tokens
        word = self._rules.receipts.word(outcome.log10_p)
        self._books.metrics.receipt(self._plan.model_id, tokens, word, outcome.log10_p)

    def _split(self, delta: Delta) -> Delta:
        """A delta with its reasoning apart: labels, manifests and receipts are of the answer alone."""
        if not self._readers:
            return delta
        final = delta.finish_reason is not None
        reasoning, text = self._readers[delta.index].read(delta.text, final=final)
        # The marks of calls are read where these are.
        text = text if self._plan.tools else without_marks(text)
        return replace(delta, text=text, reasoning=reasoning)

    def _labelled(self, delta: Delta) -> Delta:
        """A delta as it is sent, with the visible label where that begins or ends the text."""
        if self._plan.label in (None, "structured_output"):
            return delta
        return self._rules.labels.put(delta, self._outcomes[delta.index].text)

    async def _signed(self, last: Delta) -> Delta:
        """The last delta of a completion, with a manifest where there is to be one."""
        if self._plan.manifest != "embedded":
            return last
        outcome = self._outcomes[last.index]
        wrapper = await self._rules.manifests.wrapper(outcome.text, self._plan.model_id)
        outcome.manifest = bool(wrapper)
        outcome.text += wrapper
        return replace(last, text=last.text + wrapper)

    def _answer(self) -> Answer:
        plan, tokens, outcomes = self._plan, self._completion_tokens, self._outcomes
        receipts = self._rules.receipts.receipts(
            [outcome.log10_p for outcome in outcomes],
            self._caller,
            dictated=any(request.grammar is not None for request in plan.requests),
        )
        reports = [outcome.report for outcome in outcomes if outcome.report is not None]
        if len(reports) != len(outcomes):
            raise InternalError("The state of the watermark is unknown.")
        lacking = plan.manifest == "embedded" and any(not outcome.manifest for outcome in outcomes)
        manifest: ManifestNote | None = "no_text" if lacking else plan.manifest
        block = watermark_block(plan.marking, reports, receipts).model_copy(
            update={
                "manifest": manifest,
                "label": plan.label,
                "aigc": self._rules.labels.aigc(plan.response_id),
            }
        )
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
        reasoning_tokens = sum(outcome.reasoning_tokens for outcome in outcomes)
        usage = Usage(
            prompt_tokens=plan.prompt_tokens,
            completion_tokens=tokens,
            total_tokens=plan.prompt_tokens + tokens,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=self._cached_tokens()),
            completion_tokens_details=CompletionTokensDetails(reasoning_tokens=reasoning_tokens),
        )
        return Answer(outcomes, usage, block)

    @property
    def _completion_tokens(self) -> int:
        return sum(len(outcome.token_ids) for outcome in self._outcomes)

    def _cached_tokens(self) -> int:
        """Prompt tokens that no completion computed; each prompt counts once."""
        reused = [outcome.reused_tokens for outcome in self._outcomes]
        choices = self._plan.choices_per_prompt
        return sum(min(reused[first : first + choices]) for first in range(0, len(reused), choices))
