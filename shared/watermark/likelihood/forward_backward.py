"""The passes over a text: forward, backward, and draws. Compiled where there is a compiler, else numpy's."""

from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.chain import Chain
from ttmark.shared.watermark.likelihood.forward_backward_numpy import NumpyPasses
from ttmark.shared.watermark.likelihood.kernels import find_kernels
from ttmark.shared.watermark.likelihood.laws import Cells, Floats

LOG10_2 = float(np.log10(2.0))


class Passes(Protocol):
    """Whoever computes them computes the same bits."""

    def forward(self, chain: Chain, cells: Cells) -> tuple[Floats, NDArray[np.int64]]:
        """The sum over paths of prior times ratios, for rows of cells [rows, positions], under each prior.

        Mantissas and binary exponents, [paths, rows] each.
        """

    def posterior(self, chain: Chain, path: int, row: Cells) -> tuple[Floats, Floats, float, int]:
        """One row [positions] along one prior, given all its scores.

        The chance that a block begins at each position, and that its token is skipped away, [positions] each;
        the sum of `forward`, and its exponent.
        """

    def draw(self, chain: Chain, seed: int, first: int, along: NDArray[np.int64]) -> Cells:
        """Cells [rows, positions] of independent texts number `first` on; a number gives one text for ever.

        Each has a mark along the prior that `along` [rows] says, or none where that is -1.
        """


@cache
def find_passes() -> Passes:
    """The compiled ones if there are any."""
    return find_kernels() or NumpyPasses()


def log10_of(sums: Floats, exponents: NDArray[np.int64]) -> Floats:
    """Of what `forward` gives."""
    logarithms: Floats = np.log10(sums) + exponents * LOG10_2
    return logarithms


def log10_mean(values: Floats, axis: int = 0) -> Floats:
    """log10 of the mean of 10**values along an axis."""
    most = values.max(axis=axis, keepdims=True)
    mean = np.log10(np.mean(10.0 ** (values - most), axis=axis)) + most.squeeze(axis)
    return np.asarray(mean, dtype=np.float64)
