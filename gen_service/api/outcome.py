"""Completions gathered from their deltas, and what is said when all of them have ended."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ttmark.gen_service.api.merge import IndexedDelta
from ttmark.gen_service.engine import FinishReason, MarkReport, TokenLogprob
from ttmark.shared.http.service_errors import InternalError
from ttmark.shared.schemas.sampling import Usage
from ttmark.shared.schemas.watermark_block import WatermarkBlock


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


@dataclass(frozen=True, slots=True)
class Ending:
    """All of a response, once its last completion has ended."""

    completions: Sequence[Outcome]
    usage: Usage
    watermark: WatermarkBlock


class Outcomes:
    """All completions of a response."""

    def __init__(self, count: int) -> None:
        self.completions = [Outcome() for _ in range(count)]

    def add(self, indexed: IndexedDelta) -> None:
        """Appends a delta to its completion."""
        outcome, delta = self.completions[indexed.index], indexed.delta
        outcome.text += delta.text
        outcome.reasoning += indexed.reasoning
        outcome.token_ids += delta.token_ids
        outcome.logprobs += delta.logprobs or ()
        outcome.finish_reason = delta.finish_reason
        outcome.report = delta.report
        outcome.reused_tokens = delta.reused_tokens

    @property
    def finished(self) -> bool:
        """Whether every completion has ended."""
        return all(outcome.finish_reason for outcome in self.completions)

    @property
    def completion_tokens(self) -> int:
        """Tokens generated so far."""
        return sum(len(outcome.token_ids) for outcome in self.completions)

    @property
    def reasoning_tokens(self) -> int:
        """Those of them that are reasoning, once all have ended."""
        return sum(outcome.reasoning_tokens for outcome in self.completions)

    @property
    def reports(self) -> list[MarkReport]:
        """What became of the watermark of each completion.

        Raises:
            InternalError: a completion ended without a report, so nothing can be said of its watermark.
        """
        reports = [outcome.report for outcome in self.completions if outcome.report is not None]
        if len(reports) != len(self.completions):
            raise InternalError("The state of the watermark is unknown.")
        return reports
