"""All layers of a Llama over matrices in groups, for a pass of commits and probes: in one call."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from ttmark.gen_service.engine.model.attention import AttentionPlan
from ttmark.gen_service.engine.native import AttentionCall, Kernels, function, is_half
from ttmark.gen_service.engine.native.grouped import GROUP, GroupedMatrix

_TENSORS, _MATRICES = (
    ("attention_norm", "bias", "feed_norm"),
    ("query_key_value", "output", "gate_up", "down"),
)


class _Layer(ctypes.Structure):
    """`struct layer` of kernels.c."""

    _fields_ = [(name, ctypes.c_void_p) for name in (*_TENSORS, *_MATRICES)]


class _Pass(ctypes.Structure):
    """`struct pass` of kernels.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("layers", "caches", "turns", "slots", "hidden", "packed")),
        *((name, ctypes.c_void_p) for name in ("normed", "attended", "gate_up", "gated")),
        *((name, ctypes.c_void_p) for name in ("codes", "scales", "sums")),
        *((name, ctypes.c_int64) for name in ("count", "rows", "kept", "tiles", "to_value")),
        ("epsilon", ctypes.c_float),
        ("in_tiles", ctypes.c_int32),
    ]


class CompiledLayers:
    """Computes the layers to the bits of `CompiledOperations`, on one thread.

    Args:
        layers: of `FusedLlama`, whose matrices are all `GroupedMatrix`, with one window.
    """

    def __init__(
        self, layers: Sequence[Any], heads: int, kv_heads: int, dim: int, epsilon: float, kernels: Kernels
    ) -> None:
        pointer, size = ctypes.c_void_p, ctypes.c_int64
        self._compute = function(kernels.library.ttmark_layers, pointer, pointer)
        self._compute.restype = ctypes.c_int
        self._adopt = function(kernels.library.ttmark_adopt, *[pointer] * 5, size, size)
        self._heads, self._kv_heads, self._dim, self._epsilon = heads, kv_heads, dim, epsilon
        self._layers, self._pointers = layers, pointer * len(layers)
        self._structs = (_Layer * len(layers))()
        for struct, layer in zip(self._structs, layers, strict=True):
            for name in _TENSORS:
                tensor = getattr(layer, name)
                setattr(struct, name, None if tensor is None else tensor.data_ptr())
            for name in _MATRICES:
                setattr(struct, name, getattr(layer, name).address)

    @staticmethod
    def suit(layers: Sequence[Any]) -> bool:
        matrices = (getattr(layer, name) for layer in layers for name in _MATRICES)
        windows = {layer.window for layer in layers}
        return len(windows) == 1 and all(isinstance(matrix, GroupedMatrix) for matrix in matrices)

    @staticmethod
    def takes(plan: AttentionPlan) -> bool:
        return torch.get_num_threads() == 1 and plan.kernel is not None and not plan.chunks

    def __call__(self, hidden: torch.Tensor, turns: torch.Tensor, plan: AttentionPlan) -> None:
        """Takes the rows of a pass through all layers.

        Args:
            hidden: [rows, width], contiguous; it is changed.
            turns: complex64 [rows, 1, dim / 2].

        Raises:
            MemoryError: none is left for values of the matrices.
        """
        if plan.kernel is None:
            raise ValueError("the pass has no commits and probes")
        count, rows, first, dim = len(self._layers), len(hidden), self._layers[0], self._dim
        heads, kv_heads, own = self._heads, self._kv_heads, plan.kernel.own
        groups, inner = heads // kv_heads, first.down.ins
        packed = hidden.new_empty((count, rows, (heads + 2 * kv_heads) * dim))  # outlives the pass
        key_value = packed[:, :, heads * dim :].view(count, rows, 2, kv_heads, dim)
        arenas = [plan.cache.arena(layer, key_value[0]).rows for layer in range(count)]
        row, side, head, _ = arenas[0].stride()
        tiles = plan.kernel.tiles(first.window, groups)
        normed, attended = torch.empty_like(hidden), hidden.new_zeros((rows, heads * dim))
        gate_up, gated = hidden.new_empty((rows, 2 * inner)), hidden.new_empty((rows, inner))
        most = max(hidden.shape[1], heads * dim, inner)
        codes = torch.empty((rows, 2, most), dtype=torch.int8)
        scales, sums = torch.empty((2, rows, 2, most // GROUP)).unbind()
        caches = self._pointers(*(arena.data_ptr() for arena in arenas))
        held = (turns, plan.slots, hidden, packed, normed, attended, gate_up, gated, codes, scales, sums)
        call = _Pass(
            ctypes.addressof(self._structs),
            ctypes.addressof(caches),
            *(tensor.data_ptr() for tensor in held),
            *(count, rows, len(plan.slots), len(tiles), side),
            self._epsilon,
            first.down.in_tiles(rows),
        )
        sizes = AttentionCall(
            tiles=tiles.data_ptr(),
            own=own.data_ptr(),
            query_row=packed.stride(1),
            query_head=dim,
            key_row=packed.stride(1),
            key_head=dim,
            cache_row=row,
            cache_head=head,
            kv_heads=kv_heads,
            groups=groups,
            dim=dim,
            depth=own.shape[1],
            scale=dim**-0.5,
            half=is_half(hidden),
        )
        for layers, chosen, slots in plan.adopted:
            left = self._pointers(*(layers[layer].data_ptr() for layer in range(count)))
            places = left, chosen.data_ptr(), slots.data_ptr()
            self._adopt(ctypes.byref(call), ctypes.byref(sizes), *places, len(slots), layers[0].stride(0))
        if not self._compute(ctypes.byref(call), ctypes.byref(sizes)):
            raise MemoryError("no memory for the values of a tile of a matrix")
        if plan.kept is not None:
            plan.kept.update(enumerate(key_value[:, slice(*plan.probes)].unbind()))
