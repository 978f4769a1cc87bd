"""Passages that carry a foreign mark: windows of a fixed grid, each with its exact p-value."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ttmark.shared.watermark.detectors.segments import disjoint
from ttmark.shared.watermark.foreign.evidence import ForeignEvidence, ScoredText
from ttmark.shared.watermark.pauses import pause

SHORTEST = 32
"""Tokens of the narrowest windows; each next width is twice as wide, and windows overlap by half."""


@dataclass(frozen=True, slots=True)
class Passage:
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


def passages(text: ScoredText, length: int) -> list[Passage]:
    """All windows with a scored token, the most surprising first."""
    found, step = [], math.log10(max(1, window_count(length)))
    for start, end in grid(length):
        pause()
        first, last = np.searchsorted(text.positions, (start, end)).tolist()
        if first < last:
            evidence = text.evidence(first, last)
            found.append(Passage(start, end, evidence.log10_p + step, evidence))
    return sorted(found, key=lambda one: one.log10_e)


def reported(windows: Sequence[Passage], log10_limit: float) -> list[Passage]:
    """The best windows within the limit that do not overlap, in order; those that touch are one passage."""
    merged: list[Passage] = []
    kept = disjoint(one for one in windows if one.log10_e <= log10_limit)
    for one in sorted(kept, key=lambda each: each.start):
        if merged and merged[-1].end == one.start:
            before = merged.pop()
            best = min(before, one, key=lambda each: each.log10_e)
            one = Passage(before.start, one.end, best.log10_e, best.evidence)
        merged.append(one)
    return merged
