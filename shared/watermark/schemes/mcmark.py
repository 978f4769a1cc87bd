"""ENS-MCMark: the support falls into channels and the key favours one channel per layer.

Chen et al. 2025 (MCMark); the ensemble composes it over layers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.nulls import BinomialNull, Null
from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.schemes.base import MAX_LAYERS, Probs, Scheme, Words, check_range
from ttmark.shared.watermark.score_distributions import LayerOutcome, layered_law

MAX_CHANNELS = 256
# Digits taken from one lane of 63 bits leave at least these bits over: bias below 2**-20.
SPARE_BITS = 20
LANE_BITS = 63


@dataclass(frozen=True, slots=True)
class MCMark(Scheme):
    """Layer by layer, blocks of the context's target channel gain mass, others lose it."""

    name = "mcmark"
    title = "ENS-MCMark"
    default_context_width = 2
    uses_context_words = True

    layers: int = 5
    channels: int = 20

    def _check(self) -> None:
        check_range("channels", self.channels, 2, MAX_CHANNELS)
        check_range("layers", self.layers, 1, MAX_LAYERS)
        if self.layers > 2 * self._digits_per_lane:
            raise ValueError(f"{self.layers} layers of {self.channels} channels exceed one PRF output")

    @property
    def word_count(self) -> int:
        return -(-self.layers // self._digits_per_lane)

    @property
    def null(self) -> Null:
        return BinomialNull(trials=self.layers, probability=1.0 / self.channels)

    def reweight(self, probs: Probs, words: Words, context_words: Words, segments: Segments) -> Probs:
        channels, targets = self._digits(words), self._digits(context_words)
        for channel, target in zip(channels, targets, strict=True):
            factors = self._factors(segments.grouped_sum(probs, channel, self.channels), target)
            probs = self._blended(probs, probs * factors[segments.ids, channel])
        return probs

    def score(self, words: Words, context_words: Words) -> NDArray[np.float64]:
        """Number of layers in which the block is in the target channel."""
        hits = np.zeros(words.shape[0])
        for channel, target in zip(self._digits(words), self._digits(context_words), strict=True):
            hits += channel == target
        return hits

    def law(self, probs: Probs) -> NDArray[np.float64]:
        """The block's channel has mass S = p + (1 - p) / l: p becomes p / S as the target, else p^2 / S."""

        def layer(probs: Probs) -> tuple[LayerOutcome, LayerOutcome]:
            mass = probs + (1.0 - probs) / self.channels
            target = 1.0 / self.channels
            return LayerOutcome(True, probs / mass, target), LayerOutcome(
                False, probs**2 / mass, 1.0 - target
            )

        return layered_law(layer, [1] * self.layers, self.cells, self.blend, probs)

    def _factors(self, masses: NDArray[np.float64], target: NDArray[np.int64]) -> NDArray[np.float64]:
        """What each channel's mass S_j [S, l] is multiplied by when channel i = `target` [S] is favoured.

        min(l, 1 / S_i) for the target, [(1 - l S_i)_+ / sum_k (l S_k - 1)_+] (l S_j - 1)_+ / S_j for
        the others, with 0/0 = 0.
        """
        scaled = masses * self.channels  # [S, l] l S_j
        excess = np.clip(scaled - 1.0, 0.0, None)
        rows = np.arange(masses.shape[0])
        target_scaled = scaled[rows, target]  # [S]
        share = np.clip(1.0 - target_scaled, 0.0, None) / _nonzero(np.sum(excess, axis=1))
        factors = share[:, None] * self.channels * excess / _nonzero(scaled)
        factors[rows, target] = self.channels / np.clip(target_scaled, 1.0, None)
        return factors

    @property
    def _digits_per_lane(self) -> int:
        digits = 1
        while self.channels ** (digits + 1) <= 1 << (LANE_BITS - SPARE_BITS):
            digits += 1
        return digits

    def _digits(self, words: Words) -> list[NDArray[np.int64]]:
        """Base-`channels` digits of the lanes, one per layer, lowest digit of the first lane first."""
        digits = []
        for layer in range(self.layers):
            lane, digit = divmod(layer, self._digits_per_lane)
            if digit == 0:
                rest = (words[:, lane] >> 1) & ((1 << LANE_BITS) - 1)
            quotient = rest // self.channels
            digits.append(rest - quotient * self.channels)
            rest = quotient
        return digits


def _nonzero(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(values > 0.0, values, 1.0)
