"""The exact null of SynthID-Text's weighted score: sums of fair bits with falling whole weights.

Tails come from the convolution of the blocks' distributions, after a change of measure that moves the
mean to the observed total; nothing underflows and the result keeps its relative precision.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.nulls import LN10, fair_hits
from ttmark.shared.watermark.pauses import aside

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
