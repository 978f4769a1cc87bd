"""How far a watermarked passage reaches: an interval for its length, and for marked text that was not found.

Inside a passage blocks score m on average, elsewhere 0. Moving an end outwards by blocks of sum S changes the
log likelihood of normal scores by m (S - m/2 each) / v, v their variance, so an end is in doubt as far as the
best alignment comes within `DOUBT` of its maximum. Four such exceedances, two at each end, have exp(-DOUBT)
each (Ville), 5 % together. Neither m nor v is known, and scores are not normal: coverage is simulated.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.alignment import alignment_path
from ttmark.shared.watermark.detectors.scan import SKIP
from ttmark.shared.watermark.pauses import paused_ranges

DOUBT = math.log(4 / 0.05)
# Few blocks with a large score say little about where a passage ends: larger ones count as this.
_LARGEST = 3.0
_LEAST_MEAN = 0.05
# Two-sided 95 % of a normal mean.
_WIDTH = 1.96


@dataclass(frozen=True, slots=True)
class Extent:
    """Boundaries of a passage, in tokens from the first scored one.

    Attributes:
        inner: what it surely holds; its start is not before its end where that is nothing.
        outer: what it lies in.
        mean: of its blocks' scores, in standard deviations.
    """

    inner: tuple[int, int]
    outer: tuple[int, int]
    mean: float


def extent(
    scores: NDArray[np.float64], block_size: int, start: int, end: int, *, low: int, high: int
) -> Extent:
    """The doubt about a passage found at boundaries [start, end), between its neighbours at `low` and `high`.

    `scores` [n - r + 1] are the z of the blocks that start at each of n tokens. Linear in `high - low`.
    """
    scores = np.minimum(scores, _LARGEST)
    blocks = scores[start + alignment_path(scores[start : end - block_size + 1], block_size, SKIP)]
    mean = max(float(blocks.mean()), _LEAST_MEAN)
    doubt = DOUBT * max(1.0, float(blocks.var())) / mean
    values, n = scores.tolist(), scores.size + block_size - 1
    right = _in_doubt(values, block_size, start, high, mean / 2.0, doubt)
    left = _in_doubt(values[::-1], block_size, n - end, n - low, mean / 2.0, doubt)
    return Extent((n - left[0], right[0]), (n - left[1], right[1]), mean)


def unseen(scores: NDArray[np.float64], block_size: int, mean: float) -> float:
    """The share of text with these position scores [N] that may be marked by blocks of this mean, unnoticed.

    The upper end of a 95 % interval. One position in r is that of a block.
    """
    if scores.size == 0:
        return 0.0
    most = float(np.minimum(scores, _LARGEST).mean()) + _WIDTH / math.sqrt(scores.size)
    return min(1.0, max(0.0, block_size * most / mean))


def _in_doubt(
    values: list[float], block_size: int, start: int, stop: int, drift: float, doubt: float
) -> tuple[int, int]:
    """The first and the last boundary that the best alignment from `start` reaches within `doubt`."""
    sums = [-SKIP * t for t in range(block_size)]
    for first, last in paused_ranges(start, stop - block_size + 1):
        for block in range(first, last):
            sums.append(max(sums[-1] - SKIP, sums[-block_size] + values[block] - drift))
    best = np.array(sums)
    ends = np.flatnonzero(best >= best.max() - doubt)
    return start + int(ends[0]), start + int(ends[-1])
