"""Completions gathered from their pieces."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from gen_service.api.merge import Piece
from gen_service.engine.request import FinishReason, MarkReport, TokenLogprob
from shared.http.errors import InternalError


@dataclass(slots=True)
class Outcome:
    """One completion as far as it has come."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    report: MarkReport | None = None


class Outcomes:
    """All completions of a response."""

    def __init__(self, count: int) -> None:
        self.completions = [Outcome() for _ in range(count)]

    def add(self, piece: Piece) -> None:
        """Appends a piece to its completion."""
        outcome, delta = self.completions[piece.index], piece.delta
        outcome.text += delta.text
        outcome.token_ids += delta.token_ids
        outcome.logprobs += delta.logprobs or ()
        outcome.finish_reason = delta.finish_reason
        outcome.report = delta.report

    @property
    def finished(self) -> bool:
        """Whether every completion has ended."""
        return all(outcome.finish_reason for outcome in self.completions)

    @property
    def completion_tokens(self) -> int:
        """Tokens generated so far."""
        return sum(len(outcome.token_ids) for outcome in self.completions)

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


async def gather(events: AsyncGenerator[Piece | None, None], count: int) -> Outcomes:
    """All completions, whole."""
    outcomes = Outcomes(count)
    async with aclosing(events):
        async for piece in events:
            if piece is not None:
                outcomes.add(piece)
    return outcomes
