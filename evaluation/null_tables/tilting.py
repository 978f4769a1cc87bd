"""Exponentially tilted score nulls: the proposals of importance sampling."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.nulls import BinomialNull, ExponentialNull, Null

Scores = NDArray[np.float64]
CHUNK_POSITIONS = 16


@dataclass(frozen=True)
class TiltedBinomial:
    """Standardised scores z under density proportional to exp(theta z) times the null's."""

    null: BinomialNull
    theta: float

    @property
    def log_moment(self) -> float:
        """ln E exp(theta z) under the null."""
        step = self.theta / self.null.standard_deviation
        grown = math.log1p(self.null.probability * math.expm1(step))
        return self.null.trials * grown - step * self.null.mean

    def draw(self, rng: np.random.Generator, count: int) -> Scores:
        limits, aliases = self._alias_table
        position = rng.random(count) * limits.size
        hits = position.astype(np.int64)
        hits = np.where(position - hits < limits[hits], hits, aliases[hits])
        return (hits.astype(np.float64) - self.null.mean) / self.null.standard_deviation

    @cached_property
    def _alias_table(self) -> tuple[Scores, NDArray[np.int64]]:
        """Walker's alias method: each hit count keeps its cell up to a limit and gives the rest away."""
        from scipy.stats import binom  # optional: `--help` works without it

        weight = self.null.probability * math.exp(self.theta / self.null.standard_deviation)
        probability = weight / (1.0 - self.null.probability + weight)
        cells = self.null.trials + 1
        limits = binom.pmf(np.arange(cells), self.null.trials, probability) * cells
        aliases = np.arange(cells)
        low, high = (
            [i for i in range(cells) if limits[i] < 1.0],
            [i for i in range(cells) if limits[i] >= 1.0],
        )
        while low and high:
            aliases[low[-1]] = high[-1]
            limits[high[-1]] -= 1.0 - limits[low.pop()]
            if limits[high[-1]] < 1.0:
                low.append(high.pop())
        limits[low + high] = 1.0
        return limits, aliases


@dataclass(frozen=True)
class TiltedExponential:
    """The same of an exponential null."""

    theta: float

    @property
    def log_moment(self) -> float:
        return -math.log1p(-self.theta) - self.theta

    def draw(self, rng: np.random.Generator, count: int) -> Scores:
        return rng.standard_exponential(count) / (1.0 - self.theta) - 1.0


def null_scores(null: Null, rng: np.random.Generator, shape: tuple[int, ...]) -> Scores:
    """Standardised scores of unwatermarked text."""
    words = rng.integers(0, 2**64, shape, dtype=np.uint64)
    scores: Scores = (null.draw(words) - null.mean) / null.standard_deviation
    return scores


def null_chunks(
    null: Null, positions: int, lanes: int, rng: np.random.Generator, stops: Iterable[int] = ()
) -> Iterator[Scores]:
    """Scores of `lanes` unwatermarked texts, [positions, lanes], a few positions at a time.

    A chunk ends at each of `stops` as well; the scores do not depend on them.
    """
    start = 0
    for end in sorted({*range(CHUNK_POSITIONS, positions, CHUNK_POSITIONS), *stops, positions}):
        yield null_scores(null, rng, (end - start, lanes))
        start = end


def tilted(null: Null, theta: float) -> TiltedBinomial | TiltedExponential:
    """The tilted scores of a null. Raises TypeError for a null without a closed form."""
    if isinstance(null, BinomialNull):
        return TiltedBinomial(null, theta)
    if isinstance(null, ExponentialNull):
        return TiltedExponential(theta)
    raise TypeError(f"no closed tilting for {null.name}")
