"""Sums of block scores with a whole weight for each block: their exact distribution without a watermark.

A weighted score is rounded down to a lattice, so that the sum is a whole number whose distribution is a
convolution: exact for what is added up, whatever the weights are, as long as they do not depend on the key.
As in `weighted_null` the mean is first moved to the observed sum, so that no tail underflows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.nulls import BinomialNull, ExponentialNull, Null
from ttmark.shared.watermark.pauses import aside, pause
from ttmark.shared.watermark.tails import LN10
from ttmark.shared.watermark.weighted_null import WeightedNull, fair_pmf

MOST_WEIGHT = 32
"""Of a block in a text of up to `FEW_BLOCKS`; in longer ones less, as their rounding averages out."""
FEW_BLOCKS = 128
# Of a score that is not whole, in its standard deviation: lattice points at weight 1.
_FINENESS = 4.0
# The window of the convolution on each side of the mean, in standard deviations of the sum and in lengths in
# which the slowest tail of a block falls by e: what lies beyond is below a double's precision.
_DEVIATIONS, _LENGTHS = 12.0, 30.0
_SMALLEST_WINDOW, _LARGEST_WINDOW = 1 << 12, 1 << 20
# A share of the tilted distribution below this may be rounding.
_SMALLEST_SHARE = 1e-9
_HALVINGS = 24

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def most_weight(blocks: int) -> int:
    """The largest weight in a text of so many blocks: the lattice of their sum does not grow with them."""
    return max(4, round(MOST_WEIGHT * min(1.0, math.sqrt(FEW_BLOCKS / max(1, blocks)))))


def lattice_step(null: Null) -> float:
    """What one point of the lattice stands for in weighted scores; whole scores are not rounded."""
    return 1.0 if isinstance(null, BinomialNull) else null.standard_deviation / _FINENESS


def weighted_total(null: Null, scores: Floats, weights: Ints) -> NDArray[np.int64]:
    """The sum that is tested: of floor(weight x score / step) over the last axis of `scores` [.., blocks]."""
    # Whole scores are whole doubles, and a double of an exponential score is below the variable already.
    points: NDArray[np.int64] = np.floor(scores * weights / lattice_step(null)).astype(np.int64)
    total: NDArray[np.int64] = points.sum(axis=-1)
    return total


def weighted_log10_tail(null: Null, weights: Ints, total: int) -> float:
    """log10 P(`weighted_total` >= total) without a watermark, for weights [blocks] above 0."""
    values, counts = np.unique(weights, return_counts=True)
    if not values.size or total <= 0:
        return 0.0
    groups = [
        _Group(_cells(null, weight), count)
        for weight, count in zip(values.tolist(), counts.tolist(), strict=True)
    ]
    with aside():  # tens of milliseconds of transforms
        return _log_tail(groups, total) / LN10


@dataclass(frozen=True, slots=True, eq=False)
class _Finite:
    """Values 0, 1, ... with the probabilities `pmf`, the last above 0.

    Attributes:
        steepest: theta below which the variable exists when it is tilted by exp(theta x).
    """

    pmf: Floats
    steepest: ClassVar[float] = math.inf

    @property
    def most(self) -> float:
        return float(self.pmf.size - 1)

    @property
    def log_chance_of_most(self) -> float:
        return math.log(self.pmf[-1])

    def length(self, theta: float) -> float:
        """In which its tilted tail falls by e, or by more."""
        del theta
        return self.most / _LENGTHS

    def moments(self, theta: float) -> tuple[float, float, float]:
        """ln E exp(theta x), and the tilted mean and variance."""
        tilted, log_moment = self._tilted(theta)
        values = np.arange(self.pmf.size)
        mean = float(tilted @ values)
        return log_moment, mean, float(tilted @ (values - mean) ** 2)

    def transform(self, theta: float, window: int) -> NDArray[np.complex128]:
        """Of the tilted distribution on a circle of `window` points, as `rfft` has it."""
        return np.fft.rfft(self._tilted(theta)[0], window)

    def _tilted(self, theta: float) -> tuple[Floats, float]:
        exponents = theta * (np.arange(self.pmf.size) - self.most)  # the largest is 0
        tilted = self.pmf * np.exp(exponents)
        mass = float(tilted.sum())
        return tilted / mass, math.log(mass) + theta * self.most


@dataclass(frozen=True, slots=True)
class _Geometric:
    """The whole part of an exponential variable: P(x >= k) = exp(-rate k); methods as of `_Finite`."""

    rate: float
    most: ClassVar[float] = math.inf
    log_chance_of_most: ClassVar[float] = -math.inf

    @property
    def steepest(self) -> float:
        return self.rate

    def length(self, theta: float) -> float:
        return 1.0 / (self.rate - theta)

    def moments(self, theta: float) -> tuple[float, float, float]:
        rest = self.rate - theta
        log_moment = math.log(-math.expm1(-self.rate)) - math.log(-math.expm1(-rest))
        mean = 1.0 / math.expm1(rest)
        return log_moment, mean, mean * (1.0 + mean)

    def transform(self, theta: float, window: int) -> NDArray[np.complex128]:
        rest = self.rate - theta
        return -math.expm1(-rest) / (1.0 - math.exp(-rest) * _circle(window))


_Cells = _Finite | _Geometric


@dataclass(frozen=True, slots=True)
class _Group:
    """Independent variables that are alike."""

    cells: _Cells
    count: int


def _cells(null: Null, weight: int) -> _Cells:
    """floor(weight x score / step) of one block."""
    scale = weight / lattice_step(null)
    match null:
        case ExponentialNull():
            return _Geometric(1.0 / scale)
        case BinomialNull(trials, probability):
            hits = np.arange(trials + 1)
            ways = np.array([math.comb(trials, hit) for hit in hits.tolist()], dtype=np.float64)
            pmf = ways * probability**hits * (1.0 - probability) ** (trials - hits)
        case WeightedNull(depth):
            pmf = fair_pmf(depth)
        case _:
            raise TypeError(f"no weighted sums of {null.name}")
    points = np.floor(np.arange(pmf.size, dtype=np.float64) * weight / lattice_step(null)).astype(np.int64)
    return _Finite(np.bincount(points, pmf).astype(np.float64))


def _log_tail(groups: Sequence[_Group], total: int) -> float:
    """ln P(S >= total) for S the sum over all groups, 0 < total."""
    most = sum(group.count * group.cells.most for group in groups)
    if total > most - 0.5:
        at_most = sum(group.count * group.cells.log_chance_of_most for group in groups)
        return at_most if total <= most else -math.inf
    theta = 0.0 if total <= _moments(groups, 0.0)[1] else _tilt(groups, total)
    log_moment, _, variance = _moments(groups, theta)
    reach = math.ceil(_reach(groups, theta, variance)) + 1
    window = max(_SMALLEST_WINDOW, 1 << (2 * reach).bit_length())
    transform = np.ones(window // 2 + 1, dtype=np.complex128)
    for group in groups:
        pause()
        transform *= _power(group.cells.transform(theta, window), group.count)
    # [window] the tilted distribution of S, wrapped round outside of the window about its mean.
    tilted = np.fft.irfft(transform, window)
    steps = np.arange(min(window // 2, reach + 1))
    share = float(np.sum(np.exp(-theta * steps) * tilted[(total + steps) % window]))
    if theta == 0.0:
        below = float(np.sum(tilted[(total - 1 - steps) % window]))
        return math.log1p(-below) if below < 0.5 else math.log(share)
    # A tail so far out that a wider window would be needed is bounded from above (Chernoff).
    return log_moment - theta * total + math.log(share if share > _SMALLEST_SHARE else 1.0)


def _reach(groups: Sequence[_Group], theta: float, variance: float) -> float:
    longest = max(group.cells.length(theta) for group in groups)
    return _DEVIATIONS * math.sqrt(variance) + _LENGTHS * longest


@lru_cache(maxsize=2)
def _circle(window: int) -> NDArray[np.complex128]:
    points: NDArray[np.complex128] = np.exp(-2j * np.pi / window * np.arange(window // 2 + 1))
    return points


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """By squaring: numpy's own power of complex numbers takes thirty times as long."""
    result = base
    for bit in bin(exponent)[3:]:
        result = result * result
        if bit == "1":
            result *= base
    return result


def _moments(groups: Sequence[_Group], theta: float) -> tuple[float, float, float]:
    found = np.array([group.cells.moments(theta) for group in groups])
    log_moment, mean, variance = (np.array([group.count for group in groups]) @ found).tolist()
    return log_moment, mean, variance


def _tilt(groups: Sequence[_Group], target: float) -> float:
    """About the theta > 0 under which S has mean `target`, or less where S would spread too far.

    The tail is exact under any.
    """

    def low(theta: float) -> bool:
        _, mean, variance = _moments(groups, theta)
        return mean < target and 4.0 * _reach(groups, theta, variance) < _LARGEST_WINDOW

    steepest = min(group.cells.steepest for group in groups)
    lower, upper = 0.0, steepest
    if steepest == math.inf:
        upper = 2.0**-10
        while low(upper):
            upper *= 2.0
    for _ in range(_HALVINGS):
        middle = (lower + upper) / 2.0
        lower, upper = (middle, upper) if low(middle) else (lower, middle)
    return lower
