"""The distribution of scores in text without watermark, exact for every scheme."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.tails import LN10, log_binomial_tail, log_gamma_tail

# A unit exponential variable read from this many bits of a PRF word.
EXPONENTIAL_BITS = 52


class Null(Protocol):
    """Score of one block without watermark; the scores of distinct blocks are independent."""

    @property
    def name(self) -> str:
        """Identifies the distribution: equal names, equal null tables."""

    @property
    def mean(self) -> float: ...
    @property
    def standard_deviation(self) -> float: ...
    @property
    def maximum(self) -> float: ...

    def log10_tail(self, total: float, blocks: int) -> float:
        """log10 P(sum of `blocks` scores >= total), blocks >= 1."""

    def draw(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Scores made from uniform 64-bit words, one each; any shape."""


@dataclass(frozen=True, slots=True)
class BinomialNull:
    """A score that counts hits in `trials` layers, each with `probability`."""

    trials: int
    probability: float

    @property
    def name(self) -> str:
        return f"binomial-{self.trials}-{self.probability:.6g}"

    @property
    def mean(self) -> float:
        return self.trials * self.probability

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(self.trials * self.probability * (1.0 - self.probability))

    @property
    def maximum(self) -> float:
        return float(self.trials)

    def log10_tail(self, total: float, blocks: int) -> float:
        hits = math.ceil(total - 1e-6)
        return log_binomial_tail(hits, self.trials * blocks, self.probability) / LN10

    def draw(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        if self.probability == 0.5 and self.trials <= 64:
            return fair_hits(words, self.trials)
        below = _binomial_below(self.trials, self.probability)
        limits = np.minimum(below * 2.0**64, float(2**64 - 2**11)).astype(np.uint64)
        scores = np.zeros(words.shape)
        for limit in limits:
            scores += words >= limit
        return scores


@dataclass(frozen=True, slots=True)
class ExponentialNull:
    """A score that is a unit exponential variable; sums are Gamma(blocks, 1)."""

    name: str = "exponential"
    mean: float = 1.0
    standard_deviation: float = 1.0
    maximum: float = EXPONENTIAL_BITS * math.log(2.0)

    def log10_tail(self, total: float, blocks: int) -> float:
        return log_gamma_tail(total, blocks) / LN10

    def draw(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        return exponential_score(words >> np.uint64(64 - EXPONENTIAL_BITS))


def _binomial_below(trials: int, probability: float) -> NDArray[np.float64]:
    """P(X <= k) of X ~ Bin(trials, probability) for k = 0 .. trials - 1."""
    hits = np.arange(trials)
    ways = np.array([math.comb(trials, int(k)) for k in hits], dtype=np.float64)
    return np.cumsum(ways * probability**hits * (1.0 - probability) ** (trials - hits))


def fair_hits(words: NDArray[np.uint64], bits: int) -> NDArray[np.float64]:
    """How many of the lowest `bits` bits of each word are 1."""
    hits: NDArray[np.uint8] = np.bitwise_count(words & np.uint64((1 << bits) - 1))
    return hits.astype(np.float64)


def exponential_score(cells: NDArray[np.uint64]) -> NDArray[np.float64]:
    """-ln(1 - k / 2**52) of cell numbers k: never above the exponential variable they round."""
    above = np.uint64(1 << EXPONENTIAL_BITS) - cells  # 1..2**52, exact as a double
    scores: NDArray[np.float64] = EXPONENTIAL_BITS * math.log(2.0) - np.log(above.astype(np.float64))
    return np.maximum(scores, 0.0)
