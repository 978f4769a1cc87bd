"""The tree rows of one pass, attended to by the Triton kernel on a GPU. Imports Triton at its first use."""

from collections.abc import Callable, Iterable
from importlib.util import find_spec

import numpy as np
import torch
from numpy.typing import NDArray

_BLOCK_ROWS = 16  # the fewest that a matrix product of the kernel takes


def has_tree_kernel(device: torch.device) -> bool:
    """Whether the kernel can run there: Triton comes with torch's CUDA builds."""
    return device.type == "cuda" and find_spec("triton") is not None


class TreeAttention:
    """What the kernel needs to know of a pass.

    Args:
        tiles: [tiles, 4] int32 under a sliding window and for a number of query heads per KV head.
        own: [rows, depth] int32, the tree rows that each tree row attends to, -1 for none.
    """

    def __init__(self, tiles: Callable[[int | None, int], torch.Tensor], own: torch.Tensor) -> None:
        self._tiles = tiles
        self._own = own

    def __call__(
        self,
        query: torch.Tensor,
        key_value: torch.Tensor,
        cache: torch.Tensor,
        window: int | None,
        scale: float,
    ) -> torch.Tensor:
        """Attention of the tree rows -> [tree_rows, heads, dim].

        Args:
            query: [tree_rows, heads, dim].
            key_value: of the same rows, [tree_rows, 2, kv_heads, dim].
            cache: [capacity, 2, kv_heads, dim].
        """
        from gen_service.engine.tree_kernel import attend_tree

        tiles = self._tiles(window, query.shape[1] // key_value.shape[2])
        heads_first = query.transpose(0, 1)
        key, value = key_value.unbind(1)
        keys, values = cache.unbind(1)
        return attend_tree(heads_first, key, value, keys, values, tiles, self._own, scale)


def tile_spans(spans: Iterable[tuple[int, int, int, int]], groups: int) -> NDArray[np.int64]:
    """Cuts spans (start, stop, first, last) into tiles [tiles, 4] of as many rows as a program takes."""
    step = rows_per_program(groups) // groups
    tiles = [
        (row, min(row + step, stop), first, last)
        for start, stop, first, last in spans
        for row in range(start, stop, step)
    ]
    return np.array(tiles, dtype=np.int64).reshape(-1, 4)


def rows_per_program(groups: int) -> int:
    """Packed query rows of one tile, `groups` for each row of the pass: a power of two."""
    return max(_BLOCK_ROWS, 1 << (groups - 1).bit_length())
