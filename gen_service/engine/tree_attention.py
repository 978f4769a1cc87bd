"""The tree rows of one pass, attended to by the Triton kernel on a GPU. Imports Triton at its first use."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec

import torch


def has_tree_kernel(device: torch.device) -> bool:
    """Whether the kernel can run there: Triton comes with torch's CUDA builds."""
    return device.type == "cuda" and find_spec("triton") is not None


class TreeAttention:
    """What the kernel needs to know of a pass; the tiles of each window are laid out once for all layers.

    Args:
        spans: the prefixes (start, stop, first, last) of the tree rows under a sliding window.
        own: [rows, depth] int32, the rows of the pass that each tree row attends to, -1 for none.
    """

    def __init__(
        self, spans: Callable[[int | None], Sequence[tuple[int, int, int, int]]], own: torch.Tensor
    ) -> None:
        self._spans = spans
        self._own = own
        self._tiles: dict[int | None, torch.Tensor] = {}

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        window: int | None,
        scale: float,
    ) -> torch.Tensor:
        """Attention of the tree rows -> [tree_rows, heads, dim].

        Args:
            query: [heads, rows, dim].
            key, value: of the pass, [rows, kv_heads, dim].
            keys, values: of the cache, [capacity, kv_heads, dim].
        """
        from gen_service.engine.tree_kernel import attend_tree, tile_spans

        if window not in self._tiles:
            groups = query.shape[0] // key.shape[1]
            self._tiles[window] = tile_spans(self._spans(window), groups, query.device)
        return attend_tree(query, key, value, keys, values, self._tiles[window], self._own, scale)
