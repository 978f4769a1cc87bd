"""ENS-DiPmark: layers of the DiP reweighting over random orders of the support.

Wu et al. 2023 (DiPmark), Eq. for the alpha-reweight; the ensemble composes it over layers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.nulls import BinomialNull, Null
from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.schemes.base import MAX_LAYERS, Probs, Scheme, Words, check_range
from ttmark.shared.watermark.score_distributions import LayerOutcome, layered_law

SIGN_BIT = -(1 << 63)
# Places in the order of a layer at which the law of a score is computed.
_PLACES = 128


@dataclass(frozen=True, slots=True)
class DiPmark(Scheme):
    """Each layer orders the blocks by its uniforms and moves mass from the low end to the high end."""

    name = "dipmark"
    title = "ENS-DiPmark"
    default_context_width = 2

    layers: int = 5
    alpha: float = 0.3

    def _check(self) -> None:
        check_range("layers", self.layers, 1, MAX_LAYERS)
        if not 0.0 < self.alpha <= 0.5:
            raise ValueError(f"alpha must be above 0 and at most 0.5, not {self.alpha}")

    @property
    def word_count(self) -> int:
        return self.layers

    @property
    def null(self) -> Null:
        return BinomialNull(trials=self.layers, probability=0.5)

    def reweight(self, probs: Probs, words: Words, context_words: Words, segments: Segments) -> Probs:
        del context_words
        for layer in range(self.layers):
            # Unsigned order of signed lanes.
            order = segments.order(words[:, layer] ^ SIGN_BIT)
            probs = self._blended(probs, self._layer(probs, order, segments))
        return probs

    def _layer(self, probs: Probs, order: NDArray[np.int64], segments: Segments) -> Probs:
        """P_w from differences of F' = (F - alpha)_+ + (F - (1 - alpha))_+ along `order` [N]."""
        mass = segments.cumulative_sum(probs[order])  # [N] F
        moved = self._moved(mass)
        before = np.concatenate([np.zeros_like(moved[:1]), moved[:-1]])
        before[segments.starts] = 0.0
        result = np.empty_like(probs)
        result[order] = moved - before
        return result

    def _moved(self, mass: NDArray[np.float64]) -> NDArray[np.float64]:
        """F' of F."""
        return np.clip(mass - self.alpha, 0.0, None) + np.clip(mass - (1.0 - self.alpha), 0.0, None)

    def score(self, words: Words, context_words: Words) -> NDArray[np.float64]:
        """Number of layers whose uniform is in the upper half."""
        del context_words
        hits: NDArray[np.int64] = np.count_nonzero(words[:, : self.layers] < 0, axis=1)
        return hits.astype(np.float64)

    def law(self, probs: Probs) -> NDArray[np.float64]:
        """A block at u in the order has the mass (1 - p) u of the others before it."""

        def layer(probs: Probs) -> list[LayerOutcome]:
            places = (np.arange(_PLACES) + 0.5) / _PLACES
            before = (1.0 - probs) * places[:, None]  # [places, P]
            mass = self._moved(before + probs) - self._moved(before)
            mass *= probs / mass.mean(axis=0)  # the mean over places is p, but for the sum's error
            hits = (places > 0.5).tolist()
            return [LayerOutcome(hit, row, 1.0 / _PLACES) for hit, row in zip(hits, mass, strict=True)]

        return layered_law(layer, [1] * self.layers, self.cells, self.blend, probs)
