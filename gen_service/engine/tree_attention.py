"""The tree rows of one pass, attended to by the Triton kernel on a GPU. Imports Triton at its first use."""

from collections.abc import Callable
from importlib.util import find_spec

import torch


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
        from ttmark.gen_service.engine.tree_kernel import attend_tree

        tiles = self._tiles(window, query.shape[1] // key_value.shape[2])
        heads_first = query.transpose(0, 1)
        key, value = key_value.unbind(1)
        keys, values = cache.unbind(1)
        return attend_tree(heads_first, key, value, keys, values, tiles, self._own, scale)
