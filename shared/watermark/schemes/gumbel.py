"""Gumbel: emit the block that wins an exponential race run by the key (Aaronson 2022)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.nulls import EXPONENTIAL_BITS, ExponentialNull, Null, exponential_score
from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.schemes.base import Probs, Scheme, Words
from ttmark.shared.watermark.score_distributions import CellScale

# Below this a probability counts as this, so that a race time stays finite.
SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class Gumbel(Scheme):
    """P_w puts all mass on argmin of -log u(b) / P(b)."""

    name = "gumbel"
    title = "Gumbel"
    default_context_width = 4

    @property
    def null(self) -> Null:
        return ExponentialNull()

    def reweight(self, probs: Probs, words: Words, context_words: Words, segments: Segments) -> Probs:
        del context_words
        # The midpoint of a cell of 2**-52 is an exact double strictly between 0 and 1.
        uniforms = (_cells(words).astype(np.float64) + 0.5) * 2.0**-EXPONENTIAL_BITS
        times = -np.log(uniforms) / np.clip(probs, SMALLEST, None)
        times = np.where(probs > 0.0, times, math.inf)
        winner = np.zeros_like(probs)
        winner[segments.first_argmin(times)] = 1.0
        return self._blended(probs, winner)

    def score(self, words: Words, context_words: Words) -> NDArray[np.float64]:
        """-log(1 - u) from the cell's lower end: never above the exact exponential variable."""
        del context_words
        return exponential_score(_cells(words).astype(np.uint64))

    @property
    def cells(self) -> CellScale:
        return CellScale(384, 1.0 / 32.0)

    def law(self, probs: Probs) -> NDArray[np.float64]:
        """Exact: the winner's u has the distribution function u^(1 / p)."""
        below = -np.expm1(-self.cells.edges()[1:])  # [cells - 1] u at the upper ends
        reached = self.blend * below ** (1.0 / probs[:, None]) + (1.0 - self.blend) * below
        ends = np.zeros((probs.size, 1))
        return np.diff(reached, axis=1, prepend=ends, append=ends + 1.0)


def _cells(words: Words) -> NDArray[np.int64]:
    """The upper 52 bits of the first lane, 0..2**52 - 1."""
    return (words[:, 0] >> (64 - EXPONENTIAL_BITS)) & ((1 << EXPONENTIAL_BITS) - 1)
