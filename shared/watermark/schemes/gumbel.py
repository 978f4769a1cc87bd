"""Gumbel: emit the block that wins an exponential race run by the key (Aaronson 2022)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shared.watermark.arrays import Array, namespace
from shared.watermark.nulls import EXPONENTIAL_BITS, ExponentialNull, Null, exponential_score
from shared.watermark.ragged import Segments
from shared.watermark.schemes.blend import blend, check_blend

# Below this a probability counts as this, so that a race time stays finite.
SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class Gumbel:
    """P_w puts all mass on argmin of -log u(b) / P(b)."""

    name: ClassVar[str] = "gumbel"
    default_context_width: ClassVar[int] = 4
    uses_context_words: ClassVar[bool] = False

    blend: float = 1.0

    def __post_init__(self) -> None:
        check_blend(self.blend)

    @property
    def word_count(self) -> int:
        return 1

    @property
    def null(self) -> Null:
        return ExponentialNull()

    def reweight(self, probs: Array, words: Array, context_words: Array, segments: Segments) -> Array:
        del context_words
        xp = namespace(probs)
        # The midpoint of a cell of 2**-52 is an exact double strictly between 0 and 1.
        uniforms = (xp.astype(_cells(words), probs.dtype) + 0.5) * 2.0**-EXPONENTIAL_BITS
        times = -xp.log(uniforms) / xp.clip(probs, SMALLEST, None)
        times = xp.where(probs > 0.0, times, xp.full_like(times, math.inf))
        winner = xp.zeros_like(probs)
        winner[segments.first_argmin(times)] = 1.0
        return blend(probs, winner, self.blend)

    def score(self, words: Array, context_words: Array) -> NDArray[np.float64]:
        """-log(1 - u) from the cell's lower end: never above the exact exponential variable."""
        del context_words
        return exponential_score(_cells(words).astype(np.uint64))


def _cells(words: Array) -> Array:
    """The upper 52 bits of the first lane, 0..2**52 - 1."""
    return (words[:, 0] >> (64 - EXPONENTIAL_BITS)) & ((1 << EXPONENTIAL_BITS) - 1)
