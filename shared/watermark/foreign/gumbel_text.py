"""Scores of the Gumbel watermarks: a token adds -ln(1 - u), an exponential variable without the mark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.foreign.evidence import ForeignEvidence, Tokens
from ttmark.shared.watermark.foreign.weighted_gammas import log_weighted_gamma_tail
from ttmark.shared.watermark.tails import LN10, log_gamma_tail

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
