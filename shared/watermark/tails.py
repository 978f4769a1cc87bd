"""Upper tails of the binomial and gamma distributions as natural logarithms, far beyond 1e-308.

A tail is its largest term times a series of falling ratios, summed relative to that term; nothing
underflows. scipy's `logsf` gives -inf or loses all digits below about 1e-300.
"""

import math

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
