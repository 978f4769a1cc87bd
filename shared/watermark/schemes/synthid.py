"""SynthID-Text: tournament sampling with two candidates, in its distribution form, and its exact null.

Dathathri et al. 2024 (the vectorised two-candidate tournament); here a candidate is a block.

The weighted score is a sum of fair bits with falling whole weights. Its tails come from the convolution of
the blocks' distributions, after a change of measure that moves the mean to the observed total; nothing
underflows and the result keeps its relative precision.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.interruption import aside
from ttmark.shared.watermark.nulls import LN10, BinomialNull, Null, fair_hits
from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.schemes.base import Probs, Scheme, Words, check_range
from ttmark.shared.watermark.score_distributions import CellScale, LayerOutcome, layered_law

# The window of the convolution on each side of the mean, in standard deviations.
_REACH = 20.0
_SMALLEST_WINDOW = 1 << 13
_HALVINGS = 24


def layer_weights(depth: int) -> NDArray[np.int64]:
    """The published linspace(10, 1, depth) times depth - 1, which makes it whole numbers."""
    if depth == 1:
        return np.ones(1, dtype=np.int64)
    return 10 * (depth - 1) - 9 * np.arange(depth)


@dataclass(frozen=True, slots=True)
class WeightedNull:
    """A score that adds the weights of the layers whose fair bit is 1."""

    depth: int

    @property
    def name(self) -> str:
        return f"weighted-{self.depth}"

    @property
    def mean(self) -> float:
        return float(layer_weights(self.depth).sum()) / 2.0

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(float(np.sum(layer_weights(self.depth) ** 2))) / 2.0

    @property
    def maximum(self) -> float:
        return float(layer_weights(self.depth).sum())

    def log10_tail(self, total: float, blocks: int) -> float:
        threshold = math.ceil(total - 1e-6)
        if threshold <= 0:
            return 0.0
        if threshold > blocks * self.maximum - 0.5:
            at_maximum = -blocks * self.depth * math.log10(2.0)
            return at_maximum if threshold <= blocks * self.maximum else -math.inf
        with aside():  # up to half a second of transforms
            return _log_tail(layer_weights(self.depth), threshold, blocks) / LN10

    def window(self, blocks: int) -> int:
        """Points of the convolution behind the tail of a sum of `blocks` scores, about: what it costs."""
        return _window(math.ceil(_REACH * self.standard_deviation * math.sqrt(blocks)))

    def draw(self, words: NDArray[np.uint64]) -> NDArray[np.float64]:
        return weighted_hits(words, self.depth)


def weighted_hits(words: NDArray[np.uint64], depth: int) -> NDArray[np.float64]:
    """Sum over the lowest `depth` bits of each word of bit times weight."""
    if depth == 1:
        return fair_hits(words, 1)
    scores = np.zeros(words.shape)
    for layer, weight in enumerate(layer_weights(depth)):
        scores += weight * ((words >> np.uint64(layer)) & np.uint64(1))
    return scores


def _log_tail(weights: NDArray[np.int64], threshold: int, blocks: int) -> float:
    """ln P(S >= threshold) for S the sum of `blocks` scores, 0 < threshold < its maximum."""
    target = threshold / blocks
    theta = 0.0 if target <= weights.sum() / 2.0 else _tilt(weights, target)
    chance = 1.0 / (1.0 + np.exp(-theta * weights))  # of each bit under the tilted measure
    deviation = math.sqrt(blocks * float(np.sum(weights**2 * chance * (1.0 - chance))))
    reach = math.ceil(_REACH * deviation)
    window = _window(reach)
    # [window] the tilted distribution of S, wrapped round outside the window about its mean.
    transform = np.fft.rfft(_block_pmf(weights.size, theta), window) ** blocks
    tilted = np.fft.irfft(transform, window)
    steps = np.arange(min(window // 2, reach + 1))
    share = float(np.sum(np.exp(-theta * steps) * tilted[(threshold + steps) % window]))
    log_moment = blocks * float(np.sum(np.logaddexp(0.0, theta * weights) - math.log(2.0)))
    if theta == 0.0:
        below = float(np.sum(tilted[(threshold - 1 - steps) % window]))
        return math.log1p(-below) if below < 0.5 else math.log(share)
    return log_moment - theta * threshold + math.log(share)


def _window(reach: int) -> int:
    return max(_SMALLEST_WINDOW, 1 << (2 * reach).bit_length())


def _tilt(weights: NDArray[np.int64], target: float) -> float:
    """About the theta > 0 under which one block has mean `target`, between half and all of its maximum.

    The tail is exact under any theta; a good one only keeps the sum far from rounding.
    """

    def excess(theta: float) -> float:
        return float(np.sum(weights / (1.0 + np.exp(-theta * weights)))) - target

    upper = 1.0 / float(weights.max())
    while excess(upper) < 0.0:
        upper *= 2.0
    lower = 0.0
    for _ in range(_HALVINGS):
        middle = (lower + upper) / 2.0
        lower, upper = (middle, upper) if excess(middle) < 0.0 else (lower, middle)
    return upper


def _block_pmf(depth: int, theta: float) -> NDArray[np.float64]:
    """Distribution of one block's score, tilted by exp(theta s)."""
    pmf = _fair_pmf(depth)
    log_weight = theta * np.arange(pmf.size)
    tilted = pmf * np.exp(log_weight - log_weight[-1])
    normalized: NDArray[np.float64] = tilted / tilted.sum()
    return normalized


@cache
def _fair_pmf(depth: int) -> NDArray[np.float64]:
    """Distribution of one block's score, from 0 to its maximum."""
    pmf = np.ones(1)
    for weight in layer_weights(depth):
        shifted = np.zeros(pmf.size + int(weight))
        shifted[: pmf.size] = pmf
        shifted[int(weight) :] += pmf
        pmf = shifted / 2.0
    return pmf


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

        def layer(probs: Probs) -> tuple[LayerOutcome, LayerOutcome]:
            change = probs * (1.0 - probs) / 2.0
            return LayerOutcome(True, probs + change, 0.5), LayerOutcome(False, probs - change, 0.5)

        weights = layer_weights(self.depth).tolist() if self.weighted else [1] * self.depth
        return layered_law(layer, weights, self.cells, self.blend, probs)
