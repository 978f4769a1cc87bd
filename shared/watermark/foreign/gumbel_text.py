"""Scores of the Gumbel watermarks: a token adds -ln(1 - u), an exponential variable without the mark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.foreign.evidence import ForeignEvidence, Tokens
from ttmark.shared.watermark.nulls import LN10, log_gamma_tail
from ttmark.shared.watermark.pauses import STEPS, pause

_NOTHING = 45.0
"""What is smaller than a sum by this logarithm, some hundred times, changes none of 15 digits."""


def log_weighted_gamma_tail(threshold: float, shape: int, first: float, second: float) -> float:
    """ln P(first X + second Y >= threshold) for independent X, Y ~ Gamma(shape, 1), positive weights.

    Counted in the smaller weight, the other term is a gamma variable of shape `shape + K` with K negative
    binomial, so that the tail is a mixture of gamma tails of whole shapes. There are about as many terms as
    `shape` times the ratio of the weights; those left out add nothing to 15 digits.
    """
    if threshold <= 0.0:
        return 0.0
    wide, narrow = max(first, second), min(first, second)
    if wide == narrow:
        return log_gamma_tail(threshold / narrow, 2 * shape)
    ratio, reduced = narrow / wide, threshold / narrow
    mean = shape * (1.0 - ratio) / ratio
    # Of K = 0: its probability, the tail of shape 2 * shape, and the Poisson term that the tail ends with.
    log_weight, log_tail = shape * math.log(ratio), log_gamma_tail(reduced, 2 * shape)
    log_event = (2 * shape - 1) * math.log(reduced) - reduced - math.lgamma(2 * shape)
    total, done = log_weight + log_tail, 0
    # Twice beyond the mean each weight is a fixed share of the one before.
    while done < 2.0 * mean or log_weight > total - _NOTHING:
        pause()
        more = np.arange(done + 1, done + STEPS + 1)
        log_weights = log_weight + np.cumsum(np.log((shape - 1 + more) / more) + math.log1p(-ratio))
        log_events = log_event + np.cumsum(math.log(reduced) - np.log(2 * shape - 1 + more))
        log_tails = np.logaddexp.accumulate(np.concatenate([[log_tail], log_events]))[1:]
        terms = log_weights + np.minimum(log_tails, 0.0)
        total = float(np.logaddexp(total, np.logaddexp.reduce(terms)))
        log_weight, log_event, log_tail = (float(each[-1]) for each in (log_weights, log_events, log_tails))
        done += STEPS
    return min(0.0, total)


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class KeyScores:
    """Scores under one key.

    Attributes:
        weight: of the key in the sum over keys.
        scores: of each scored token [N], as the original computes them.
        least: no more than exponential variables [N], which those of numbers with few bits may exceed.
    """

    weight: float
    scores: Floats
    least: Floats


@dataclass(frozen=True, slots=True)
class GumbelText:
    """A text under one key, or under two whose scores are added with weights."""

    positions: Tokens
    keys: Sequence[KeyScores]

    def keeping(self, kept: NDArray[np.bool_]) -> "GumbelText":
        """The text with these of its scored tokens [N] alone."""
        keys = [KeyScores(key.weight, key.scores[kept], key.least[kept]) for key in self.keys]
        return GumbelText(self.positions[kept], keys)

    def evidence(self, first: int, last: int) -> ForeignEvidence:
        """`score` is the sum of the scores."""
        score = math.fsum(key.weight * float(key.scores[first:last].sum()) for key in self.keys)
        least = math.fsum(key.weight * float(key.least[first:last].sum()) for key in self.keys)
        weights = [key.weight for key in self.keys]
        return ForeignEvidence(log10_tail(least, last - first, weights), score, last - first)


def log10_tail(total: float, count: int, weights: Sequence[float]) -> float:
    """log10 P(weighted sum of `count` exponential variables for each weight >= total)."""
    total = max(0.0, total)
    if len(weights) == 1:
        log_p = log_gamma_tail(total / weights[0], count)
    else:
        log_p = log_weighted_gamma_tail(total, count, *weights)
    return min(0.0, log_p / LN10)
