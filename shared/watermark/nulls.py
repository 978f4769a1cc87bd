"""The distribution of scores in text without watermark, exact for every scheme, and its upper tails.

Tails are natural logarithms, far beyond 1e-308: the largest term times a series of falling ratios, summed
relative to that term; nothing underflows. scipy's `logsf` gives -inf or loses all digits below about 1e-300.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

LN10 = math.log(10.0)


def log_binomial_tail(successes: int, trials: int, probability: float) -> float:
    """ln P(X >= successes) for X ~ Bin(trials, probability), 0 < probability < 1."""
    if successes <= 0:
        return 0.0
    if successes > trials:
        return -math.inf
    if successes > trials * probability:
        return _binomial_side(successes, trials, probability)
    return _log_complement(_binomial_side(trials - successes + 1, trials, 1.0 - probability))


def log_gamma_tail(threshold: float, shape: int) -> float:
    """ln P(X >= threshold) for X ~ Gamma(shape, 1) with whole `shape` >= 1.

    Equals the probability of fewer than `shape` events of a Poisson process of that mean.
    """
    if threshold <= 0.0:
        return 0.0
    log_threshold = math.log(threshold)
    if threshold > shape:
        last = (shape - 1) * log_threshold - threshold - math.lgamma(shape)
        return last + math.log(_series((shape - 1 - np.arange(shape)) / threshold))
    first = shape * log_threshold - threshold - math.lgamma(shape + 1)
    count = shape + 64 + int(16 * math.sqrt(shape))
    return _log_complement(first + math.log(_series(threshold / (shape + 1 + np.arange(count)))))


def _binomial_side(successes: int, trials: int, probability: float) -> float:
    """The tail on the far side of the mean, where the terms fall from the first on."""
    largest = (
        (math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1))
        + successes * math.log(probability)
        + (trials - successes) * math.log1p(-probability)
    )
    step = np.arange(min(trials - successes, 64 + int(16 * math.sqrt(trials))))
    odds = probability / (1.0 - probability)
    return largest + math.log(_series((trials - successes - step) / (successes + 1 + step) * odds))


def _series(ratios: NDArray[np.float64]) -> float:
    """1 + r0 + r0 r1 + r0 r1 r2 + ..."""
    return 1.0 + float(np.sum(np.cumprod(ratios)))


def _log_complement(log_probability: float) -> float:
    """ln(1 - exp(log_probability))."""
    if log_probability > -math.log(2.0):
        return math.log(-math.expm1(log_probability)) if log_probability < 0.0 else -math.inf
    return math.log1p(-math.exp(log_probability))


def corrected(log10_p: float, hypotheses: float) -> float:
    """log10 of a p-value that is the smallest of `hypotheses` (Bonferroni), at most 0.

    Hypotheses that share the rate unevenly count as the inverse of each one's share.
    """
    return min(0.0, log10_p + math.log10(hypotheses))


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
