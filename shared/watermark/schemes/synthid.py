"""SynthID-Text: tournament sampling with two candidates, in its distribution form.

Dathathri et al. 2024 (the vectorised two-candidate tournament); here a candidate is a block.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shared.watermark.arrays import Array, namespace
from shared.watermark.nulls import BinomialNull, Null, fair_hits
from shared.watermark.ragged import Segments
from shared.watermark.schemes.blend import blend, check_blend
from shared.watermark.weighted_null import WeightedNull, weighted_hits

MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class SynthID:
    """Layer l favours blocks whose bit g_l is 1: P <- P (1 + g_l - sum of g_l P)."""

    name: ClassVar[str] = "synthid"
    default_context_width: ClassVar[int] = 4
    uses_context_words: ClassVar[bool] = False

    depth: int = 30
    blend: float = 1.0
    weighted: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= MAX_DEPTH:
            raise ValueError(f"depth must be 1 to {MAX_DEPTH}, not {self.depth}")
        check_blend(self.blend)

    @property
    def word_count(self) -> int:
        return 1

    @property
    def null(self) -> Null:
        if self.weighted:
            return WeightedNull(self.depth)
        return BinomialNull(trials=self.depth, probability=0.5)

    def reweight(self, probs: Array, words: Array, context_words: Array, segments: Segments) -> Array:
        del context_words
        xp = namespace(probs)
        lane = words[:, 0]
        for layer in range(self.depth):
            winners = probs * xp.astype((lane >> layer) & 1, probs.dtype)  # [N]
            # Rounding can bring the winning mass above 1 by an ulp, never a probability below 0.
            # The method: the namespace's clip takes longer than all else here on a few hundred blocks.
            kept = (1.0 - segments.sum(winners)).clip(0.0, 1.0)  # [S]
            probs = blend(probs, probs * segments.spread(kept) + winners, self.blend)
        return probs

    def score(self, words: Array, context_words: Array) -> NDArray[np.float64]:
        """Number of layers in which the block's bit is 1, or the sum of their weights.

        `depth` times the published mean, (depth - 1) * depth times the published weighted mean.
        """
        del context_words
        lane = words[:, 0].astype(np.uint64)
        return weighted_hits(lane, self.depth) if self.weighted else fair_hits(lane, self.depth)
