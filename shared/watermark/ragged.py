"""Sums, orders and minima over ragged segments: flat arrays with offsets, numpy or torch.

Segment i holds the rows `offsets[i]:offsets[i + 1]`; every segment has at least one row.
"""

import math
from typing import Any

import numpy as np

from shared.watermark.arrays import Array, is_numpy, namespace


class Segments:
    """The layout of a ragged batch: S segments over N rows."""

    def __init__(self, offsets: Array) -> None:
        """`offsets` [S + 1] int64, rising from 0 to N in steps of at least one."""
        xp: Any = namespace(offsets)
        self.starts = offsets[:-1]  # [S]
        self.offsets = offsets  # [S + 1]
        lengths = offsets[1:] - offsets[:-1]
        rows = xp.arange(lengths.shape[0], dtype=offsets.dtype, device=_device(offsets))
        self.ids = xp.repeat(rows, lengths)  # [N] the segment of each row

    def __len__(self) -> int:
        return int(self.starts.shape[0])

    def sum(self, values: Array) -> Array:
        """Sum of each segment of float `values` [N] -> [S]."""
        if is_numpy(values):
            return np.add.reduceat(values, self.starts)
        return namespace(values).segment_reduce(values, "sum", offsets=self.offsets)

    def min(self, values: Array) -> Array:
        """Minimum of each segment of float `values` [N] -> [S]."""
        if is_numpy(values):
            return np.minimum.reduceat(values, self.starts)
        return namespace(values).segment_reduce(values, "min", offsets=self.offsets)

    def grouped_sum(self, values: Array, groups: Array, count: int) -> Array:
        """Sums of `values` [N] by segment and group number [N] in 0..count-1 -> [S, count]."""
        cells = self.ids * count + groups
        if is_numpy(values):
            sums = np.bincount(cells, weights=values, minlength=len(self) * count)
            return sums.reshape(len(self), count)
        empty = namespace(values).zeros(len(self) * count, dtype=values.dtype, device=values.device)
        return empty.index_add(0, cells, values).reshape(len(self), count)

    def spread(self, values: Array) -> Array:
        """One value per segment [S], repeated for its rows -> [N]."""
        return values[self.ids]

    def normalize(self, values: Array) -> Array:
        """`values` [N] divided by the sum of their segment."""
        return values / self.spread(self.sum(values))

    def cumulative_sum(self, values: Array) -> Array:
        """Running sum within each segment, inclusive: [N] -> [N]."""
        xp = namespace(values)
        running = xp.cumulative_sum(values, axis=0, include_initial=True)
        return running[1:] - self.spread(running[self.starts])

    def order(self, keys: Array) -> Array:
        """Row numbers that sort `keys` [N] within each segment, ties by row number -> [N]."""
        xp = namespace(keys)
        by_key = xp.argsort(keys, stable=True)
        return by_key[xp.argsort(self.ids[by_key], stable=True)]

    def first_argmin(self, values: Array) -> Array:
        """Row number of the first minimum of each segment of float `values` [N] -> [S] int64."""
        xp = namespace(values)
        rows = xp.arange(values.shape[0], dtype=xp.float64, device=_device(values))
        is_minimum = values == self.spread(self.min(values))
        first = self.min(xp.where(is_minimum, rows, xp.full_like(rows, math.inf)))
        return xp.astype(first, xp.int64)


def _device(array: Array) -> Any:
    return None if is_numpy(array) else array.device
