"""Sums, orders and minima over ragged segments: flat arrays with offsets.

Segment i holds the rows `offsets[i]:offsets[i + 1]`; every segment has at least one row.
"""

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)


class Segments:
    """The layout of a ragged batch: S segments over N rows."""

    def __init__(self, offsets: Int64) -> None:
        """`offsets` [S + 1], rising from 0 to N in steps of at least one."""
        self.starts = offsets[:-1]  # [S]
        self.offsets = offsets  # [S + 1]
        self.ids: Int64 = np.repeat(np.arange(len(self)), offsets[1:] - offsets[:-1])
        """[N] the segment of each row."""

    def __len__(self) -> int:
        return int(self.starts.shape[0])

    def sum(self, values: Float64) -> Float64:
        """Sum of each segment of `values` [N] -> [S]."""
        sums: Float64 = np.add.reduceat(values, self.starts)
        return sums

    def min(self, values: Float64) -> Float64:
        """Minimum of each segment of `values` [N] -> [S]."""
        minima: Float64 = np.minimum.reduceat(values, self.starts)
        return minima

    def grouped_sum(self, values: Float64, groups: Int64, count: int) -> Float64:
        """Sums of `values` [N] by segment and group number [N] in 0..count-1 -> [S, count]."""
        cells = self.ids * count + groups
        sums = np.bincount(cells, weights=values, minlength=len(self) * count)
        return sums.reshape(len(self), count).astype(np.float64, copy=False)  # the stubs take them for counts

    def spread(self, values: NDArray[Number]) -> NDArray[Number]:
        """One value per segment [S], repeated for its rows -> [N]."""
        return values[self.ids]

    def normalize(self, values: Float64) -> Float64:
        """`values` [N] divided by the sum of their segment."""
        return values / self.spread(self.sum(values))

    def cumulative_sum(self, values: Float64) -> Float64:
        """Running sum within each segment, inclusive: [N] -> [N]."""
        running: Float64 = np.cumulative_sum(values, axis=0, include_initial=True)
        return running[1:] - self.spread(running[self.starts])

    def order(self, keys: NDArray[Number]) -> Int64:
        """Row numbers that sort `keys` [N] within each segment, ties by row number -> [N]."""
        by_key = np.argsort(keys, stable=True)
        return by_key[np.argsort(self.ids[by_key], stable=True)]

    def first_argmin(self, values: Float64) -> Int64:
        """Row number of the first minimum of each segment of `values` [N] -> [S]."""
        rows = np.arange(values.shape[0], dtype=np.float64)
        is_minimum = values == self.spread(self.min(values))
        return self.min(np.where(is_minimum, rows, math.inf)).astype(np.int64)
