"""The small operations of a pass on a CPU, in C: compiled where a compiler is, else torch's own are used."""

import ctypes
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import structlog
import torch

from ttmark.shared.watermark.compiled import CompiledSource

SOURCE = CompiledSource.beside(
    Path(__file__).with_name("kernels.c"),
    ("-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
)


@cache
def find_kernels() -> "Kernels | None":
    """The kernels, compiled at the first call; None where this machine has none and compiles none."""
    try:
        return Kernels(SOURCE.load())
    except (OSError, subprocess.SubprocessError) as error:
        log = structlog.get_logger("ttmark.engine")
        log.info("kernels_not_compiled", reason=str(error).partition("\n")[0], used="torch's operators")
        return None


_MOST_DIM = 256
_LANES = 16
_QUERIES = 32  # as in kernels.c
_DTYPES = (torch.float32, torch.bfloat16)
_WORTH_A_THREAD = 1 << 16  # numbers to compute with, below which handing over costs more than it saves


class AttentionCall(ctypes.Structure):
    """`struct attention` of kernels.c: pointers, strides in elements, sizes."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("query", "key", "value", "keys", "values", "out")),
        *((name, ctypes.c_void_p) for name in ("tiles", "own", "sinks")),
        *((name, ctypes.c_int64) for name in ("query_row", "query_head", "key_row", "key_head")),
        *((name, ctypes.c_int64) for name in ("cache_row", "cache_head")),
        *((name, ctypes.c_int64) for name in ("kv_heads", "groups", "dim", "depth")),
        ("scale", ctypes.c_float),
        ("half", ctypes.c_int32),
    ]


class Kernels:
    """Row by row, in float32 or bfloat16 with sums in float32; on torch's number of threads.

    Attributes:
        level: of the instructions that they use, such as x86-64-v3.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        span, pointer = (ctypes.c_int64, ctypes.c_int64), ctypes.c_void_p
        size, number, flag = ctypes.c_int64, ctypes.c_float, ctypes.c_int
        self.library = library
        self.level = Path(library._name).stem.removeprefix("kernels-").rpartition("-")[0]
        self._normalise = function(
            library.ttmark_normalise, pointer, pointer, pointer, *span, size, size, number, flag
        )
        self._turn = function(library.ttmark_turn, pointer, pointer, *span, size, size, size, flag)
        self._gate = function(library.ttmark_gate, pointer, pointer, *span, size, flag)
        self._turn_and_keep = function(
            library.ttmark_turn_and_keep, pointer, pointer, pointer, size, pointer, size
        )
        self._attend = function(library.ttmark_attend, pointer, *span)

    GATE_MULTIPLE = _LANES

    @staticmethod
    def suit(dtype: torch.dtype, dim: int) -> bool:
        """Whether numbers of this type, and heads of this size, are computed here."""
        return dtype in _DTYPES and dim % _LANES == 0 and dim <= _MOST_DIM

    @staticmethod
    def tile_rows(groups: int) -> int:
        """Rows of the pass in a tile, of which `groups` query heads share a key: those that read it once."""
        return max(1, _QUERIES // groups)

    def normalise(
        self, rows: torch.Tensor, weight: torch.Tensor, epsilon: float, out: torch.Tensor | None = None
    ) -> torch.Tensor:
        """RMS normalisation of [rows, width], each row contiguous; to `out` [rows, width], if it is given."""
        count, width = rows.shape
        if out is None:
            out = rows.new_empty(rows.shape)
        pointers = rows.data_ptr(), weight.data_ptr(), out.data_ptr()
        stride, half = rows.stride(0), is_half(rows)
        split(
            lambda first, last: self._normalise(*pointers, first, last, width, stride, epsilon, half),
            count,
            width,
        )
        return out

    def turn(self, packed: torch.Tensor, turns: torch.Tensor, heads: int, dim: int) -> None:
        """Rotates the first `heads` heads of each row [rows, at least heads * dim] in place.

        The two halves of a head are real and imaginary parts before, and lie side by side after; the order of
        a head's numbers does not matter to attention.

        Args:
            turns: complex64 [rows, 1, dim / 2], contiguous.
        """
        pointers, stride, half = (packed.data_ptr(), turns.data_ptr()), packed.stride(0), is_half(packed)
        split(
            lambda first, last: self._turn(*pointers, first, last, heads, dim, stride, half),
            packed.shape[0],
            heads * dim,
        )

    def gate(self, gate_up: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """silu(gate) * up: [rows, 2 * width], contiguous, -> [rows, width]; the width is a multiple of 16."""
        rows, width = gate_up.shape[0], gate_up.shape[1] // 2
        if out is None:
            out = gate_up.new_empty((rows, width))
        pointers, half = (gate_up.data_ptr(), out.data_ptr()), is_half(gate_up)
        split(lambda first, last: self._gate(*pointers, first, last, width, half), rows, width)
        return out

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        tiles: torch.Tensor,
        own: torch.Tensor,
        scale: float,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention of tree rows over their prefix in the cache and over rows of the same pass (Eq. 5).

        Args:
            query: [rows, heads, dim].
            key, value: [rows, kv_heads, dim] of this pass, with equal strides.
            keys, values: the cache, [capacity, kv_heads, dim], with equal strides.
            tiles: [tiles, 4] int32: rows [start, stop) attend to cache rows [first, last).
            own: [rows, depth] int32, rows of this pass that each row attends to, itself among them; -1: none.
            sinks: float32 [heads], scores that have no value.

        Returns [rows, heads, dim].

        Raises:
            NotImplementedError: these numbers, or heads of this size, are not computed here.
        """
        rows, heads, dim = query.shape
        if not self.suit(query.dtype, dim):
            raise NotImplementedError(f"compiled attention of {dim} numbers of {query.dtype}")
        kv_heads = key.shape[1]
        out = query.new_empty((rows, heads, dim))
        tensors = (query, key, value, keys, values, out, tiles, own)
        pointers = (*(each.data_ptr() for each in tensors), None if sinks is None else sinks.data_ptr())
        strides = (stride for tensor in (query, key, keys) for stride in tensor.stride()[:2])
        sizes = (kv_heads, heads // kv_heads, dim, own.shape[1])
        call = AttentionCall(*pointers, *strides, *sizes, scale, is_half(query))
        self.run(call, tiles)
        return out

    def turn_and_keep(
        self, call: AttentionCall, packed: torch.Tensor, turns: torch.Tensor, slots: torch.Tensor
    ) -> None:
        """Turns queries and keys of `packed`, which the call's pointers lie in, and caches the first rows.

        Args:
            packed: [rows, heads + 2 * kv_heads, dim].
            turns: complex64 [rows, 1, dim / 2], contiguous.
            slots: int64, the cache rows of the first rows.
        """
        pointers = ctypes.byref(call), packed.data_ptr(), turns.data_ptr()
        self._turn_and_keep(*pointers, packed.shape[0], slots.data_ptr(), slots.shape[0])

    def run(self, call: AttentionCall, tiles: torch.Tensor) -> None:
        """Computes the tiles [tiles, 4] that the call points to."""
        seen = int((tiles[:, 3] - tiles[:, 2]).sum()) if torch.get_num_threads() > 1 else 0
        units = tiles.shape[0] * call.kv_heads
        each = seen * call.kv_heads * call.groups * call.dim // max(units, 1)
        split(lambda first, last: self._attend(ctypes.byref(call), first, last), units, each)


def function(function: Any, *arguments: Any) -> Any:
    function.argtypes, function.restype = arguments, None
    return function


def is_half(tensor: torch.Tensor) -> int:
    return int(tensor.dtype == torch.bfloat16)


def split(compute: Callable[[int, int], None], count: int, numbers: int) -> None:
    """Computes parts [first, last) of `count` units, side by side where each thread has enough numbers."""
    threads = torch.get_num_threads()
    parts = 1 if threads == 1 else max(1, min(threads, count, count * numbers // _WORTH_A_THREAD))
    if parts == 1:
        compute(0, count)
        return
    bounds = [count * part // parts for part in range(parts + 1)]
    list(_threads().map(compute, bounds[:-1], bounds[1:]))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(torch.get_num_threads(), thread_name_prefix="kernels")
