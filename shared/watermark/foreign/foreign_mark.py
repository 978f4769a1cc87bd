"""What is asked of another system's watermark, and what it answers of a text and of its passages."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.block_scores import check_tokens
from ttmark.shared.watermark.detectors.segments import disjoint
from ttmark.shared.watermark.interruption import pause

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ForeignEvidence:
    """A text, or a part of it, under one key of a foreign scheme.

    Attributes:
        log10_p: exact over keys; no repeated draw of the scheme counts twice.
        score: the statistic of the scheme's own detector, for the positions that are scored.
        scored_tokens: positions that are scored.
    """

    log10_p: float
    score: float
    scored_tokens: int


NOTHING_SCORED = ForeignEvidence(0.0, 0.0, 0)


class ScoredText(Protocol):
    @property
    def positions(self) -> Tokens:
        """Places in the text of the scored tokens [N], ascending."""

    def keeping(self, kept: NDArray[np.bool_]) -> "ScoredText":
        """The text with these of its scored tokens [N] alone."""

    def evidence(self, first: int, last: int) -> ForeignEvidence:
        """What the scored tokens `first` to `last`, the latter left out, say by themselves; at least one."""


class ForeignMark(ABC):
    @property
    @abstractmethod
    def row_tokens(self) -> int:
        """Tokens that a score depends on, the scored one included."""

    @abstractmethod
    def read(self, tokens: Tokens) -> ScoredText:
        """Scores a text, 32-bit token ids with the prompt left out where that is known."""

    @abstractmethod
    def tokens_needed(self, log10_p: float) -> int:
        """The least number of tokens whose best possible score reaches this p-value."""

    def detect(self, tokens: Sequence[int] | Tokens) -> ForeignEvidence:
        text = self.read(check_tokens(tokens))
        return text.evidence(0, text.positions.size) if text.positions.size else NOTHING_SCORED


def smallest_count(log10_p: float, best: Callable[[int], float]) -> int:
    """The least count whose best score has this p-value or a smaller one.

    Args:
        best: log10 of the p-value of the best possible score of so many tokens; it falls with each.
    """
    count = 1
    while best(count) > log10_p:
        count += 1
    return count


SHORTEST = 32
"""Tokens of the narrowest windows; each next width is twice as wide, and windows overlap by half."""


@dataclass(frozen=True, slots=True)
class ForeignPassage:
    """Tokens [start, end).

    Attributes:
        log10_e: log10 of the number of such windows expected in this document by chance: p times how many
            there are.
    """

    start: int
    end: int
    log10_e: float
    evidence: ForeignEvidence


def grid(length: int) -> Iterator[tuple[int, int]]:
    """The windows [start, end) of a text of so many tokens, narrow ones first."""
    width = SHORTEST
    while width < length:
        for start in range(0, length - width // 2, width // 2):
            yield start, min(start + width, length)
        width *= 2
    if length:
        yield 0, length


def window_count(length: int) -> int:
    """How many windows `grid` has."""
    count, width = min(length, 1), SHORTEST
    while width < length:
        count += -(-(length - width // 2) // (width // 2))
        width *= 2
    return count


def passages(text: ScoredText, length: int) -> list[ForeignPassage]:
    """All windows with a scored token, the most surprising first."""
    found, step = [], math.log10(max(1, window_count(length)))
    for start, end in grid(length):
        pause()
        first, last = np.searchsorted(text.positions, (start, end)).tolist()
        if first < last:
            evidence = text.evidence(first, last)
            found.append(ForeignPassage(start, end, evidence.log10_p + step, evidence))
    return sorted(found, key=lambda one: one.log10_e)


def reported(windows: Sequence[ForeignPassage], log10_limit: float) -> list[ForeignPassage]:
    """The best windows within the limit that do not overlap, in order; those that touch are one passage."""
    merged: list[ForeignPassage] = []
    kept = disjoint(one for one in windows if one.log10_e <= log10_limit)
    for one in sorted(kept, key=lambda each: each.start):
        if merged and merged[-1].end == one.start:
            before = merged.pop()
            best = min(before, one, key=lambda each: each.log10_e)
            one = ForeignPassage(before.start, one.end, best.log10_e, best.evidence)
        merged.append(one)
    return merged
