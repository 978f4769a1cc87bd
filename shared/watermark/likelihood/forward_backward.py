"""The passes over a text: forward, backward, and draws. Compiled where there is a compiler, else numpy's."""

import ctypes
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.compiled import CompiledSource
from ttmark.shared.watermark.interruption import pause
from ttmark.shared.watermark.likelihood.forward_backward_numpy import NumpyPasses
from ttmark.shared.watermark.likelihood.hidden_markov_model import MarkovChain
from ttmark.shared.watermark.score_distributions import Cells, Floats

# No sum is reordered and no product fused: the bits are those of numpy.
SOURCE = CompiledSource.beside(
    Path(__file__).with_name("kernels.c"), ("-O3", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi")
)
# Positions times rows of a call: some milliseconds.
_AT_ONCE = 1 << 18
_LANES = 8  # as in kernels.c


class _Model(ctypes.Structure):
    """`struct model` of kernels.c."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("ratios", "paths", "kinds", "surprise")),
        *((name, ctypes.c_int64) for name in ("classes", "cells", "path_count", "positions", "tokens")),
    ]


@cache
def find_kernels() -> "PassKernels | None":
    """The kernels, compiled at the first call; None where there are none and none can be compiled."""
    try:
        return PassKernels(SOURCE.load())
    except (OSError, subprocess.SubprocessError):
        return None


class PassKernels:
    def __init__(self, library: ctypes.CDLL) -> None:
        model, pointer, size = ctypes.POINTER(_Model), ctypes.c_void_p, ctypes.c_int64
        self._forward = _function(library.ttmark_forward, model, pointer, size, pointer, pointer)
        self._posterior = _function(library.ttmark_posterior, model, size, *[pointer] * 6)
        self._draw = _function(
            library.ttmark_draw, model, pointer, pointer, ctypes.c_uint64, size, size, pointer, pointer
        )

    def forward(self, chain: MarkovChain, cells: Cells) -> tuple[Floats, NDArray[np.int64]]:
        cells = np.ascontiguousarray(cells)
        parts = [self._forward_rows(chain, cells[run]) for run in _runs(chain, len(cells))]
        return np.concatenate([sums for sums, _ in parts], axis=1), np.concatenate(
            [exponents for _, exponents in parts], axis=1
        )

    def _forward_rows(self, chain: MarkovChain, cells: Cells) -> tuple[Floats, NDArray[np.int64]]:
        shape = (len(chain.paths), len(cells))
        sums, exponents = np.empty(shape), np.empty(shape, dtype=np.int64)
        self._forward(_model(chain), cells.ctypes.data, len(cells), sums.ctypes.data, exponents.ctypes.data)
        return sums, exponents

    def posterior(self, chain: MarkovChain, path: int, row: Cells) -> tuple[Floats, Floats, float, int]:
        row = np.ascontiguousarray(row)
        kept, begins, apart = np.empty((row.size, 4)), np.empty(row.size), np.empty(row.size)
        whole, scale = ctypes.c_double(), ctypes.c_int64()
        places = (array.ctypes.data for array in (row, kept, begins, apart))
        self._posterior(_model(chain), path, *places, ctypes.addressof(whole), ctypes.addressof(scale))
        return begins, apart, whole.value, scale.value

    def draw(self, chain: MarkovChain, seed: int, first: int, along: NDArray[np.int64]) -> Cells:
        cells = np.empty((along.size, chain.positions), dtype=np.uint16)
        tables = chain.ratios.limits.ctypes.data, chain.ratios.guides.ctypes.data
        for run in _runs(chain, along.size):
            own, part = along[run], cells[run]
            places = own.ctypes.data, part.ctypes.data
            self._draw(_model(chain), *tables, seed, first + run.start, own.size, *places)
        return cells


def _runs(chain: MarkovChain, rows: int) -> Iterator[slice]:
    """Rows of a call, in multiples of what the kernel computes together; one run at least."""
    size = max(_LANES, _AT_ONCE // max(1, chain.positions) // _LANES * _LANES)
    for first in range(0, max(1, rows), size):
        pause()
        yield slice(first, min(first + size, rows))


def _model(chain: MarkovChain) -> Any:
    arrays = (chain.ratios.ratios, chain.paths, chain.kinds, chain.surprise)
    _, classes, cells = chain.ratios.ratios.shape
    return ctypes.byref(
        _Model(
            *(a.ctypes.data for a in arrays), classes, cells, len(chain.paths), chain.positions, chain.tokens
        )
    )


def _function(function: Any, *arguments: Any) -> Any:
    function.argtypes, function.restype = arguments, None
    return function


LOG10_2 = float(np.log10(2.0))


class Passes(Protocol):
    def forward(self, chain: MarkovChain, cells: Cells) -> tuple[Floats, NDArray[np.int64]]:
        """The sum over paths of prior times ratios, for rows of cells [rows, positions], under each prior.

        Mantissas and binary exponents, [paths, rows] each.
        """

    def posterior(self, chain: MarkovChain, path: int, row: Cells) -> tuple[Floats, Floats, float, int]:
        """One row [positions] along one prior, given all its scores.

        The chance that a block begins at each position, and that its token is skipped away, [positions] each;
        the sum of `forward`, and its exponent.
        """

    def draw(self, chain: MarkovChain, seed: int, first: int, along: NDArray[np.int64]) -> Cells:
        """Cells [rows, positions] of independent texts number `first` on; a number gives one text for ever.

        Each has a mark along the prior that `along` [rows] says, or none where that is -1.
        """


@cache
def find_passes() -> Passes:
    return find_kernels() or NumpyPasses()


def log10_of(sums: Floats, exponents: NDArray[np.int64]) -> Floats:
    logarithms: Floats = np.log10(sums) + exponents * LOG10_2
    return logarithms


def log10_mean(values: Floats, axis: int = 0, weights: Sequence[float] | None = None) -> Floats:
    """log10 of the mean of 10**values along an axis, by weights where there are some."""
    most = values.max(axis=axis, keepdims=True)
    powers = 10.0 ** (values - most)
    # `average` divides by the size of the answer, which may have none.
    mean = powers.mean(axis) if weights is None else np.average(powers, axis=axis, weights=weights)
    return np.asarray(np.log10(mean) + most.squeeze(axis), dtype=np.float64)
