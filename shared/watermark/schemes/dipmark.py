"""ENS-DiPmark: layers of the DiP reweighting over random orders of the support.

Wu et al. 2023 (DiPmark), Eq. for the alpha-reweight; the ensemble composes it over layers.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shared.watermark.arrays import Array, namespace
from shared.watermark.nulls import BinomialNull, Null
from shared.watermark.ragged import Segments
from shared.watermark.schemes.blend import blend, check_blend
from shared.watermark.schemes.limits import check_layers

SIGN_BIT = -(1 << 63)


@dataclass(frozen=True, slots=True)
class DiPmark:
    """Each layer orders the blocks by its uniforms and moves mass from the low end to the high end."""

    name: ClassVar[str] = "dipmark"
    default_context_width: ClassVar[int] = 2
    uses_context_words: ClassVar[bool] = False

    layers: int = 5
    alpha: float = 0.3
    blend: float = 1.0

    def __post_init__(self) -> None:
        check_layers(self.layers)
        if not 0.0 < self.alpha <= 0.5:
            raise ValueError(f"alpha must be above 0 and at most 0.5, not {self.alpha}")
        check_blend(self.blend)

    @property
    def word_count(self) -> int:
        return self.layers

    @property
    def null(self) -> Null:
        return BinomialNull(trials=self.layers, probability=0.5)

    def reweight(self, probs: Array, words: Array, context_words: Array, segments: Segments) -> Array:
        del context_words
        for layer in range(self.layers):
            # Unsigned order of signed lanes.
            order = segments.order(words[:, layer] ^ SIGN_BIT)
            probs = blend(probs, self._layer(probs, order, segments), self.blend)
        return probs

    def _layer(self, probs: Array, order: Array, segments: Segments) -> Array:
        """P_w from differences of F' = (F - alpha)_+ + (F - (1 - alpha))_+ along `order` [N]."""
        xp = namespace(probs)
        mass = segments.cumulative_sum(probs[order])  # [N] F
        moved = xp.clip(mass - self.alpha, 0.0, None) + xp.clip(mass - (1.0 - self.alpha), 0.0, None)
        before = xp.concat([xp.zeros_like(moved[:1]), moved[:-1]])
        before[segments.starts] = 0.0
        result = xp.empty_like(probs)
        result[order] = moved - before
        return result

    def score(self, words: Array, context_words: Array) -> NDArray[np.float64]:
        """Number of layers whose uniform is in the upper half."""
        del context_words
        hits: NDArray[np.int64] = np.count_nonzero(words[:, : self.layers] < 0, axis=1)
        return hits.astype(np.float64)
