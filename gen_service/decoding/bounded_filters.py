"""The filters of rows of which greedy decoding or a small top-k leaves a few tokens."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.filter_params import FilterParams
from ttmark.gen_service.decoding.support import Floats, Ints, Support
from ttmark.gen_service.decoding.top_k import top_k

_TIE_MARGIN = 16
_GROWTH = 4


def bounded_supports(logits: torch.Tensor, params: Sequence[FilterParams]) -> list[Support | None]:
    """Support of each row of `logits` [rows, vocab]; None: not finite.

    Args:
        params: of each row, all of them `bounded`.
    """
    rows, vocab = logits.shape
    supports: list[Support | None] = [None] * rows
    widths = np.array(
        [min((1 if p.greedy else p.top_k) + _TIE_MARGIN, vocab) for p in params], dtype=np.int64
    )
    pending = np.arange(rows)
    while pending.size:
        width = int(widths[pending].max())
        selected = logits if pending.size == rows else logits[torch.from_numpy(pending).to(logits.device)]
        window = _Window(*top_k(selected, width), [params[row] for row in pending.tolist()])
        settled = window.settle(whole=width == vocab)
        for index in np.flatnonzero(settled).tolist():
            supports[pending[index]] = window.support(index)
        pending = pending[~settled]
        widths[pending] = min(vocab, width * _GROWTH)
    return supports


class _Window:
    """The likeliest tokens of some rows, and the part of them that the filters keep."""

    def __init__(self, values: Floats, ids: Ints, params: Sequence[FilterParams]) -> None:
        self._values, self._ids = values, ids  # [rows, width], falling
        self._temperature = np.array([p.temperature for p in params])
        self._top_k = np.array([1 if p.greedy else p.top_k for p in params])
        self._top_p = np.array([p.top_p for p in params])
        self._min_p = np.array([p.min_p for p in params])
        self._probs = np.empty_like(values)
        self._counts = np.zeros(len(params), dtype=np.int64)
        self._healthy = np.isfinite(self._values[:, 0])

    def settle(self, *, whole: bool) -> NDArray[np.bool_]:
        """Applies the filters; true for the rows that the window is wide enough for.

        Args:
            whole: the window is the whole vocabulary.
        """
        rows, width = self._values.shape
        greedy = self._temperature == 0.0
        # A temperature next to zero makes the quotient infinite, which is right: such a token has no mass.
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = (self._values - self._values[:, :1]) / np.where(greedy, 1.0, self._temperature)[:, None]
            threshold = self._values[np.arange(rows), np.minimum(self._top_k, width) - 1]
            keep = self._values >= threshold[:, None]
            mass = np.where(keep, np.exp(scaled), 0.0)
            # np.cumsum adds from left to right, so trailing zeros, and with them the width, change nothing
            mass /= np.cumsum(mass, axis=1)[:, -1:]
            before = np.cumsum(mass, axis=1) - mass
            keep &= (before < self._top_p[:, None]) | (self._top_p >= 1.0)[:, None]
            keep[:, 0] = True
            keep &= mass >= self._min_p[:, None] * mass[:, :1]
            keep &= mass > 0.0
            mass = np.where(keep, mass, 0.0)
            self._probs = mass / np.cumsum(mass, axis=1)[:, -1:]
        self._counts = keep.sum(axis=1)
        # Ties of the last token that top-k keeps may lie outside of the window, and have mass.
        settled: NDArray[np.bool_] = whole | ~self._healthy | (self._values[:, -1] < threshold)
        return settled

    def support(self, row: int) -> Support | None:
        """Support of a settled row."""
        if not self._healthy[row]:
            return None
        count = 1 if self._temperature[row] == 0.0 else int(self._counts[row])
        probs = np.ones(1) if count == 1 else self._probs[row, :count].copy()
        return Support(self._ids[row, :count].copy(), probs)
