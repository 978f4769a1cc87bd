"""Null tables: p-values of the detectors that have no textbook null, from simulated scores.

A table belongs to a score distribution and a block size, nothing else: `position_scores` makes the
scores of any text independent. Built by `ttmark eval null-tables`; format in `docs/spec.md`.
"""

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

TABLE_VERSION = 2


@dataclass(frozen=True, slots=True)
class AlignedNull:
    """Thresholds of the aligned score D for falling p-values, by number of tokens."""

    beta: float
    log10_levels: Sequence[float]
    """Falling log10 p-values, the columns of the thresholds."""
    lengths: Sequence[int]
    """Rising numbers of aligned tokens n, the rows of the thresholds."""
    thresholds: Sequence[Sequence[float]]
    """Rising; a score that reaches entry [n, j] has a p-value of at most level j."""

    drift: float
    """At least what D grows by per token of a long text."""
    offsets: Sequence[float]
    """At most E D - drift n of long texts, by their n modulo the block size."""

    def log10_p(self, block_size: int, tokens: int, score: float) -> float | None:
        """The p-value of D over `tokens` tokens, rounded up to a level; None below the table."""
        beyond = bisect_right(self.lengths, tokens)
        low = self._row(block_size, tokens, range(beyond - 1, -1, -1))
        high = self._row(block_size, tokens, range(beyond, len(self.lengths)))
        if low is None:
            return None
        if high is None:
            score = self._shortened(block_size, tokens, score, self.lengths[low])
            high, tokens = low, self.lengths[low]
        below, above = self.thresholds[low], self.thresholds[high]
        share = self._share(low, high, tokens)
        reached = bisect_right(
            range(min(len(below), len(above))),
            score + 1e-9,
            key=lambda level: below[level] + share * (above[level] - below[level]),
        )
        return self.log10_levels[reached - 1] if reached else 0.0

    def _shortened(self, block_size: int, tokens: int, score: float, length: int) -> float:
        """The score of `length` tokens that is as rare as `score` is in more tokens, or less rare.

        D of a long text is a sum over its parts, all but a bounded rest at their ends: normal about
        drift n + offset with a deviation that grows as sqrt(n).
        """
        offset = self.offsets[tokens % block_size]
        excess = (score - self.drift * tokens - offset) * math.sqrt(length / tokens)
        return self.drift * length + offset + excess

    def _row(self, block_size: int, tokens: int, rows: range) -> int | None:
        """The first of `rows` whose length leaves the remainder of `tokens`."""
        remainder = tokens % block_size
        return next((row for row in rows if self.lengths[row] % block_size == remainder), None)

    def _share(self, low: int, high: int, tokens: int) -> float:
        """Where `tokens` lies between two rows in the root of the length: D grows as a n + q sqrt(n)."""
        if low == high:
            return 0.0
        left, right = math.sqrt(self.lengths[low]), math.sqrt(self.lengths[high])
        return (math.sqrt(tokens) - left) / (right - left)


@dataclass(frozen=True, slots=True)
class LocalNull:
    """Thresholds of a localized detector's best score for falling E-values, by number of tokens."""

    parameters: dict[str, float]
    log10_levels: Sequence[float]
    """Falling log10 E-values, the columns of the thresholds."""
    lengths: Sequence[int]
    """Rising numbers of scored tokens n, the rows of the thresholds."""
    thresholds: Sequence[Sequence[float]]
    """Rising; in n tokens a best score of entry [n, j] has a chance of at most 1 - exp(-10**level j)."""
    decays: Sequence[float]
    """Fall of log10 E per unit of score beyond the last threshold of each row (Karlin and Altschul 1990)."""

    def log10_e(self, tokens: int, score: float) -> float:
        """log10 of the expected number of segments with at least this score in `tokens` tokens, or more.

        The number is that of the next longer row, or of the last one times the length. Infinity for a score
        below the first threshold.
        """
        row = min(bisect_left(self.lengths, tokens), len(self.lengths) - 1)
        thresholds = self.thresholds[row]
        reached = bisect_right(thresholds, score + 1e-9)
        if reached == 0:
            return math.inf
        beyond = max(0.0, score - thresholds[-1]) if reached == len(thresholds) else 0.0
        longer = max(0.0, math.log10(tokens / self.lengths[-1]))
        return self.log10_levels[reached - 1] - self.decays[row] * beyond + longer


@dataclass(frozen=True, slots=True)
class NullTable:
    """The nulls of one score distribution and block size."""

    aligned: AlignedNull
    scan: LocalNull
    waterseeker: LocalNull


@cache
def load_null_table(null_name: str, block_size: int, own: Path | None = None) -> NullTable | None:
    """The table in the folder `own`, else the one that ships, or None where there is none."""
    shipped = resources.files("ttmark.shared.watermark") / "tables"
    name = f"{null_name}-r{block_size}.json"
    files = [folder / name for folder in (own, shipped) if folder is not None]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return None
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if data["version"] != TABLE_VERSION:
        return None
    return NullTable(
        aligned=AlignedNull(**data["aligned"]),
        scan=LocalNull(**data["scan"]),
        waterseeker=LocalNull(**data["waterseeker"]),
    )
