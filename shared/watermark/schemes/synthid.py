"""SynthID-Text: tournament sampling with two candidates, in its distribution form.

Dathathri et al. 2024 (the vectorised two-candidate tournament); here a candidate is a block.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.laws import CellScale, Outcome, layered_law
from ttmark.shared.watermark.nulls import BinomialNull, Null, fair_hits
from ttmark.shared.watermark.ragged import Segments
from ttmark.shared.watermark.schemes.base import Probs, Scheme, Words, check_range
from ttmark.shared.watermark.weighted_null import WeightedNull, layer_weights, weighted_hits

MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class SynthID(Scheme):
    """Layer l favours blocks whose bit g_l is 1: P <- P (1 + g_l - sum of g_l P)."""

    name = "synthid"
    title = "SynthID-Text"
    default_context_width = 4

    depth: int = 30
    weighted: bool = False

    def _check(self) -> None:
        check_range("depth", self.depth, 1, MAX_DEPTH)

    @property
    def null(self) -> Null:
        if self.weighted:
            return WeightedNull(self.depth)
        return BinomialNull(trials=self.depth, probability=0.5)

    def reweight(self, probs: Probs, words: Words, context_words: Words, segments: Segments) -> Probs:
        del context_words
        lane = words[:, 0]
        for layer in range(self.depth):
            winners = probs * ((lane >> layer) & 1)  # [N]
            # Rounding can bring the winning mass above 1 by an ulp, never a probability below 0.
            # The method: the function takes longer than all else here on a few hundred blocks.
            kept = (1.0 - segments.sum(winners)).clip(0.0, 1.0)  # [S]
            probs = self._blended(probs, probs * segments.spread(kept) + winners)
        return probs

    def score(self, words: Words, context_words: Words) -> NDArray[np.float64]:
        """Number of layers in which the block's bit is 1, or the sum of their weights.

        `depth` times the published mean, (depth - 1) * depth times the published weighted mean.
        """
        del context_words
        lane = words[:, 0].astype(np.uint64)
        return weighted_hits(lane, self.depth) if self.weighted else fair_hits(lane, self.depth)

    @property
    def cells(self) -> CellScale:
        if self.weighted:
            return CellScale(512, max(1.0, self.null.maximum / 511))
        return CellScale(self.depth + 1)

    def law(self, probs: Probs) -> NDArray[np.float64]:
        """A bit of 1 adds p (1 - p) / 2 to p where half of the others have one; a bit of 0 takes it."""

        def layer(probs: Probs) -> tuple[Outcome, Outcome]:
            change = probs * (1.0 - probs) / 2.0
            return Outcome(True, probs + change, 0.5), Outcome(False, probs - change, 0.5)

        weights = layer_weights(self.depth).tolist() if self.weighted else [1] * self.depth
        return layered_law(layer, weights, self.cells, self.blend, probs)
