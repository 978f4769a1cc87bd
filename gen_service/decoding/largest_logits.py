"""The largest logits of a row on a CPU, in C: compiled where a compiler is."""

import ctypes
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.shared.watermark.compiled import CompiledSource

SOURCE = CompiledSource.beside(Path(__file__).with_name("largest_logits.c"), ("-O3", "-fno-trapping-math"))


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = SOURCE.load()
    except (OSError, subprocess.SubprocessError):
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    library.ttmark_largest.argtypes = [pointer, size, size, size, ctypes.c_int, size, pointer, pointer]
    library.ttmark_largest.restype = None
    return library


def largest(logits: torch.Tensor, width: int) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """Values and ids [rows, width] of the largest logits [rows, vocab], falling, NaN first.

    Where values are equal the lower id comes first. None: they are not found here.
    """
    readable = logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.bfloat16)
    if not readable or logits.stride(1) != 1 or (library := _library()) is None:
        return None
    rows, vocab = logits.shape
    values, ids = np.empty((rows, width)), np.empty((rows, width), dtype=np.int64)
    sizes = rows, vocab, logits.stride(0), logits.dtype == torch.bfloat16, width
    library.ttmark_largest(logits.data_ptr(), *sizes, values.ctypes.data, ids.ctypes.data)
    return values, ids
