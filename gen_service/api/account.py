"""What a request is granted, uses and leaves behind: allowance, metrics, audit trail, log."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

import structlog
from starlette.requests import Request

from ttmark.gen_service.api.generation_metrics import GenerationMetrics
from ttmark.gen_service.api.labels import LabelRule
from ttmark.gen_service.api.manifests import ManifestRule
from ttmark.gen_service.api.merge import IndexedDelta
from ttmark.gen_service.api.outcome import Ending, Outcomes
from ttmark.gen_service.api.plan import Plan
from ttmark.gen_service.api.reasoning import ReasoningReader
from ttmark.gen_service.api.receipt import ReceiptRule, scored
from ttmark.gen_service.api.watermark_block import watermark_block
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.request_id import request_id
from ttmark.shared.http.service_errors import PolicyDenied
from ttmark.shared.limits.allowances import TokenAllowance
from ttmark.shared.limits.rate_limit import NOTHING, Grant
from ttmark.shared.schemas.sampling import CompletionTokensDetails, PromptTokensDetails, Usage
from ttmark.shared.schemas.watermark_block import ManifestNote
from ttmark.shared.vault.audit_events import AuditEvent, AuditSink


@dataclass(frozen=True, slots=True)
class Progress:
    """A delta that has been counted; the last of all comes with the ending of the response."""

    delta: IndexedDelta
    ending: Ending | None


@dataclass(frozen=True)
class Accounting:
    """Where the use of tokens and keys is granted and recorded, and receipts are made out."""

    metrics: GenerationMetrics
    audit: AuditSink
    allowance: TokenAllowance | None
    receipts: ReceiptRule
    manifests: ManifestRule
    labels: LabelRule

    async def open(self, plan: Plan, caller: Principal, request: Request) -> "Account":
        """Grants the most that the plan can come to, and records the use of its key.

        Raises:
            ServiceError: the caller's allowance does not suffice.
        """
        grant = NOTHING if self.allowance is None else await self.allowance.take(caller, plan.most_tokens)
        self.metrics.tokens(prompt=plan.prompt_tokens)
        self.metrics.policy(plan.marking.rule, "marked" if plan.marking.marking else "unmarked")
        use = _key_use(plan, caller, request)
        self.audit(use)
        return Account(self, plan, caller, use, grant)

    def denied(self, denial: PolicyDenied, caller: Principal, request: Request) -> None:
        """Records that the marking policy refused a request."""
        self.metrics.policy(denial.rule, "denied")
        self.audit(
            AuditEvent(
                "policy.deny",
                token_id=caller.token_id,
                tenant=caller.tenant,
                request_id=request_id(request.scope),
                reason=denial.reason,
                route=request.scope["route"].path,
                rule=denial.rule,
            )
        )


class Account:
    """One request's."""

    def __init__(
        self, books: Accounting, plan: Plan, caller: Principal, use: AuditEvent, grant: Grant
    ) -> None:
        self._outcomes = Outcomes(len(plan.requests))
        self._readers = [ReasoningReader(plan.reasoning) for _ in plan.requests] if plan.reasoning else []
        self._books = books
        self._plan = plan
        self._caller = caller
        self._use = use
        self._grant = grant

    async def follow(
        self, deltas: AsyncGenerator[IndexedDelta | None, None]
    ) -> AsyncGenerator[Progress | None, None]:
        """Counts deltas as they pass, None for a period of silence; settles however they end.

        Raises:
            InternalError: a completion ended without saying what became of its watermark.
        """
        try:
            async with aclosing(deltas):
                async for indexed in deltas:
                    if indexed is None:
                        yield None
                        continue
                    indexed = self._labelled(self._split(indexed))
                    self._outcomes.add(indexed)
                    if indexed.delta.finish_reason:
                        await self._score(indexed.index)
                        indexed = await self._signed(indexed)
                    yield Progress(indexed, self._end() if self._outcomes.finished else None)
        finally:
            self._settle(self._outcomes.completion_tokens)

    async def _score(self, index: int) -> None:
        """How detectable a completion that has ended is."""
        outcome, books = self._outcomes.completions[index], self._books
        tokenizer = self._plan.model.generator.tokenizer
        outcome.log10_p = await scored(self._plan.requests[index], outcome.text, tokenizer)
        if self._readers:
            count = self._readers[index].count
            outcome.reasoning_tokens = await asyncio.to_thread(count, outcome.token_ids, tokenizer)
        word, tokens = books.receipts.word(outcome.log10_p), len(outcome.token_ids) - outcome.reasoning_tokens
        books.metrics.receipt(self._plan.model_id, tokens, word, outcome.log10_p)

    def _split(self, indexed: IndexedDelta) -> IndexedDelta:
        """A delta with its reasoning apart: labels, manifests and receipts are of the answer alone."""
        if not self._readers:
            return indexed
        delta = indexed.delta
        final = delta.finish_reason is not None
        reasoning, text = self._readers[indexed.index].read(delta.text, final=final)
        return IndexedDelta(indexed.index, replace(delta, text=text), reasoning)

    def _labelled(self, indexed: IndexedDelta) -> IndexedDelta:
        """A delta as it is sent, with the visible label where that begins or ends the text."""
        if self._plan.label in (None, "structured_output"):
            return indexed
        return self._books.labels.put(indexed, self._outcomes.completions[indexed.index].text)

    async def _signed(self, last: IndexedDelta) -> IndexedDelta:
        """The last delta of a completion, with a manifest where there is to be one."""
        if self._plan.manifest != "embedded":
            return last
        outcome = self._outcomes.completions[last.index]
        return await self._books.manifests.end(last, outcome, self._plan.model_id)

    def _manifest(self) -> ManifestNote | None:
        lacking = any(not outcome.manifest for outcome in self._outcomes.completions)
        return "no_text" if self._plan.manifest == "embedded" and lacking else self._plan.manifest

    def _end(self) -> Ending:
        plan, tokens = self._plan, self._outcomes.completion_tokens
        receipts = self._books.receipts.receipts(
            [outcome.log10_p for outcome in self._outcomes.completions],
            self._caller,
            dictated=any(request.grammar is not None for request in plan.requests),
        )
        block = watermark_block(plan.marking, self._outcomes.reports, receipts).model_copy(
            update={
                "manifest": self._manifest(),
                "label": plan.label,
                "aigc": self._books.labels.aigc(plan.response_id),
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
        usage = Usage(
            prompt_tokens=plan.prompt_tokens,
            completion_tokens=tokens,
            total_tokens=plan.prompt_tokens + tokens,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=self._cached_tokens()),
            completion_tokens_details=CompletionTokensDetails(
                reasoning_tokens=self._outcomes.reasoning_tokens
            ),
        )
        return Ending(self._outcomes.completions, usage, block)

    def _cached_tokens(self) -> int:
        """Prompt tokens that no completion computed; each prompt counts once."""
        reused = [outcome.reused_tokens for outcome in self._outcomes.completions]
        choices = self._plan.choices_per_prompt
        return sum(min(reused[first : first + choices]) for first in range(0, len(reused), choices))

    def _settle(self, tokens: int) -> None:
        plan, allowance = self._plan, self._books.allowance
        if allowance is not None:
            allowance.settle(self._grant, used=plan.prompt_tokens + tokens)
        self._books.audit(replace(self._use, action="key.generated", tokens=tokens))


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
        rule=plan.marking.rule,
        route=request.scope["route"].path,
        tokens=plan.prompt_tokens,
    )
