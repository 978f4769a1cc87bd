"""The tree rows of one pass, attended to by a kernel: Triton's on a GPU, a compiled one on a CPU."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import torch

from ttmark.gen_service.engine.native.kernels import Kernels, find_kernels


class _Attend(Protocol):
    """Attention of tree rows over their prefix in the cache and over rows of the same pass (Eq. 5)."""

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        tiles: torch.Tensor,
        own: torch.Tensor,
        scale: float,
        sinks: torch.Tensor | None,
    ) -> torch.Tensor:
        """[rows, heads, dim]

        Args:
            query: [rows, heads, dim].
            key, value: [rows, kv_heads, dim] of this pass, with equal strides.
            keys, values: the cache, [capacity, kv_heads, dim], with equal strides.
            tiles: [tiles, 4] int32: rows [start, stop) attend to cache rows [first, last).
            own: [rows, depth] int32, rows of this pass that each row attends to, itself among them; -1: none.
            sinks: float32 [heads], scores that have no value.
        """


@dataclass(frozen=True, slots=True)
class TreeKernel:
    """A kernel, and how many query rows it takes in a tile by the heads that share a key."""

    attend: _Attend
    tile_rows: Callable[[int], int]


def find_tree_kernel(model: Any) -> TreeKernel | None:
    """The kernel for a model, if there is one: Triton comes with torch's CUDA builds, C needs a compiler."""
    device = next(model.parameters()).device
    if device.type == "cuda" and find_spec("triton") is not None:
        return triton_kernel()
    text = model.config.get_text_config()
    kernels = find_kernels() if device.type == "cpu" else None
    if kernels is None or not Kernels.suit(model.dtype, _head_size(text)):
        return None
    return TreeKernel(kernels.attend, Kernels.tile_rows)


def _head_size(text: Any) -> int:
    """Numbers of a head; with latent attention the larger of its keys and values."""
    latent = [getattr(text, name, None) or 0 for name in ("qk_head_dim", "v_head_dim")]
    size: int | None = max(latent) or getattr(text, "head_dim", None)
    return size or int(text.hidden_size) // int(text.num_attention_heads)


def triton_kernel() -> TreeKernel:
    """Triton's, which is imported now."""
    from ttmark.gen_service.engine.tree_kernel import attend_tree, tile_rows

    return TreeKernel(attend_tree, tile_rows)


class TreeAttention:
    """What a kernel needs to know of a pass.

    Attributes:
        tiles: [tiles, 4] int32 under a sliding window and for a number of query heads per KV head.
        own: [rows, depth] int32, the tree rows that each tree row attends to, -1 for none.
    """

    def __init__(
        self, kernel: TreeKernel, tiles: Callable[[int | None, int], torch.Tensor], own: torch.Tensor
    ) -> None:
        self._attend = kernel.attend
        self.tiles = tiles
        self.own = own

    def __call__(
        self,
        query: torch.Tensor,
        key_value: torch.Tensor,
        cache: torch.Tensor,
        window: int | None,
        scale: float,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention of the tree rows -> [tree_rows, heads, dim].

        Args:
            query: [tree_rows, heads, dim].
            key_value: of the same rows, [tree_rows, 2, kv_heads, dim].
            cache: [capacity, 2, kv_heads, dim].
            sinks: float32 [heads]; see `attend`.
        """
        tiles = self.tiles(window, query.shape[1] // key_value.shape[2])
        (key, value), (keys, values) = key_value.unbind(1), cache.unbind(1)
        return self._attend(query, key, value, keys, values, tiles, self.own, scale, sinks)
