"""One pass of commits and probes: the operations between its products, with what they share made once."""

from collections.abc import Callable

import torch

from ttmark.gen_service.engine.native.kernels import AttentionCall, Kernels


class TreePass:
    """The operations of a pass without prompt chunks. What a method returns holds until its next call.

    Args:
        turns: complex64 [rows, 1, dim / 2], of the rows' positions.
        slots: int64, the cache rows of the first rows.
        tiles: [tiles, 4] int32 under a sliding window.
        own: [tree rows, depth] int32; see `Kernels.attend`.
        shape: heads, KV heads, numbers of a head.
    """

    def __init__(
        self,
        kernels: Kernels,
        turns: torch.Tensor,
        slots: torch.Tensor,
        tiles: Callable[[int | None], torch.Tensor],
        own: torch.Tensor,
        shape: tuple[int, int, int],
    ) -> None:
        heads, kv_heads, dim = shape
        self._kernels = kernels
        self._turns, self._slots, self._tiles, self._own = turns, slots, tiles, own
        self._heads, self._kv_heads, self._dim = shape
        self._buffers: dict[int, torch.Tensor] = {}
        self._call = AttentionCall(
            tiles=None,
            own=own.data_ptr(),
            query_head=dim,
            key_head=dim,
            kv_heads=kv_heads,
            groups=heads // kv_heads,
            dim=dim,
            depth=own.shape[1],
            scale=dim**-0.5,
        )

    def normalise(self, rows: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """RMS normalisation of [rows, width]."""
        return self._kernels.normalise(rows, weight, epsilon, self._buffer(rows, rows.shape[1]))

    def gate(self, gate_up: torch.Tensor) -> torch.Tensor:
        """silu(gate) * up: [rows, 2 * width] -> [rows, width]"""
        return self._kernels.gate(gate_up, self._buffer(gate_up, gate_up.shape[1] // 2))

    def attend(self, packed: torch.Tensor, cache: torch.Tensor, window: int | None) -> torch.Tensor:
        """Turns and caches what a layer's projection made, and attends -> [rows, heads * dim].

        Args:
            packed: queries, keys and values [rows, (heads + 2 * kv_heads) * dim]; turned in place.
            cache: [capacity, 2, kv_heads, dim].
        """
        heads, kv_heads, dim = self._heads, self._kv_heads, self._dim
        tiles, size = self._tiles(window), packed.element_size()
        out = self._buffer(packed, heads * dim)
        call, start, cached = self._call, packed.data_ptr(), cache.data_ptr()
        call.query, call.out, call.tiles = start, out.data_ptr(), tiles.data_ptr()
        call.key = start + heads * dim * size
        call.value = start + (heads + kv_heads) * dim * size
        call.keys, call.values = cached, cached + cache.stride(1) * size
        call.query_row = call.key_row = packed.stride(0)
        call.cache_row, call.cache_head = cache.stride(0), cache.stride(2)
        call.half = int(packed.dtype == torch.bfloat16)
        self._kernels.turn_and_keep(call, packed, self._turns, self._slots)
        self._kernels.run(call, tiles)
        return out

    def _buffer(self, like: torch.Tensor, width: int) -> torch.Tensor:
        """[rows, width]; rows that nothing is written to hold numbers of before."""
        buffer = self._buffers.get(width)
        if buffer is None:
            buffer = self._buffers[width] = like.new_zeros((like.shape[0], width))
        return buffer
