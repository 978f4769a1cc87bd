"""Temperature, top-k, top-p and min-p: from logits to the support that they leave.

The result equals that of transformers' warpers applied in its order. Only the likeliest tokens of a row are
ever looked at, as many as the filters need; with top-k off the mass of the others enters through the exact
log-sum-exp of the whole row. What comes out for a row does not depend on the other rows, to the last bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gen_service.decoding.likeliest import likeliest
from gen_service.decoding.support import Support

_TIE_MARGIN = 8
_FIRST_WIDTH = 256
_GROWTH = 4

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FilterParams:
    """Filters of one row; temperature 0 leaves the likeliest token, top_k 0 and top_p 1 are off."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def first_width(self) -> int | None:
        """How many of the likeliest tokens are fetched at first; None is all."""
        if self.temperature == 0.0:
            return 1 + _TIE_MARGIN
        if self.top_k:
            return self.top_k + _TIE_MARGIN
        return _FIRST_WIDTH if self.top_p < 1.0 or self.min_p > 0.0 else None


def filter_rows(logits: torch.Tensor, params: Sequence[FilterParams]) -> list[Support | None]:
    """Support of each row of `logits` ([rows, vocab], any float type) under its own filters.

    None stands for a row that holds NaN or has no finite maximum. Ties at the top-k boundary are all kept;
    where top-p has to choose between ties (transformers leaves that to its sort) the lower id stays.
    """
    rows, vocab = logits.shape
    supports: list[Support | None] = [None] * rows
    normalizers = np.array([_log_normalizer(logits, row, p) for row, p in enumerate(params)])
    widths = np.array([min(p.first_width() or vocab, vocab) for p in params], dtype=np.int64)
    pending = np.arange(rows)
    while pending.size:
        width = int(widths[pending].max())
        selected = logits if pending.size == rows else logits[torch.from_numpy(pending).to(logits.device)]
        window = _Window(
            *likeliest(selected, width),
            [params[row] for row in pending.tolist()],
            normalizers[pending],
        )
        settled = window.settle(whole=width == vocab)
        for index in np.flatnonzero(settled).tolist():
            supports[pending[index]] = window.support(index)
        pending = pending[~settled]
        widths[pending] = min(vocab, width * _GROWTH)
    return supports


def _log_normalizer(logits: torch.Tensor, row: int, params: FilterParams) -> float:
    """Log-sum-exp of a whole row of `logits` after temperature where top-k is off, NaN elsewhere.

    One row at a time, so that the order of the additions is always the same.
    """
    if params.top_k or params.temperature == 0.0:
        return np.nan
    return float(torch.logsumexp(logits[row].double() / params.temperature, dim=0))


class _Window:
    """The likeliest tokens of some rows, and the part of them that the filters keep."""

    def __init__(
        self, values: Floats, ids: Ints, params: Sequence[FilterParams], normalizers: Floats
    ) -> None:
        self._values, self._ids = _order_ties(values, ids)  # [rows, width], falling
        self._temperature = np.array([p.temperature for p in params])
        self._top_k = np.array([p.top_k for p in params])
        self._top_p = np.array([p.top_p for p in params])
        self._min_p = np.array([p.min_p for p in params])
        self._normalizers = normalizers
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
        scaled = self._values / np.where(greedy, 1.0, self._temperature)[:, None]
        with np.errstate(invalid="ignore"):
            threshold = scaled[np.arange(rows), np.clip(self._top_k, 1, width) - 1]
            threshold = np.where(greedy, scaled[:, 0], np.where(self._top_k > 0, threshold, -np.inf))
            keep = scaled >= threshold[:, None]
            shift = np.where(np.isnan(self._normalizers), scaled[:, 0], self._normalizers)
            mass = np.where(keep, np.exp(scaled - shift[:, None]), 0.0)
            # np.cumsum adds from left to right, so trailing zeros, and with them the width, change nothing
            total = np.where(np.isnan(self._normalizers), np.cumsum(mass, axis=1)[:, -1], 1.0)
            mass /= total[:, None]
            before = np.cumsum(mass, axis=1) - mass
            keep &= (before < self._top_p[:, None]) | (self._top_p >= 1.0)[:, None]
            keep[:, 0] = True
            keep &= mass >= self._min_p[:, None] * mass[:, :1]
            keep &= mass > 0.0
            mass = np.where(keep, mass, 0.0)
            self._probs = mass / np.cumsum(mass, axis=1)[:, -1:]
        self._counts = keep.sum(axis=1)
        # A tie of the last token that is kept may lie outside of the window, with a better id.
        last = self._values[np.arange(rows), np.maximum(self._counts, 1) - 1]
        settled: NDArray[np.bool_] = whole | ~self._healthy | (self._values[:, -1] < last)
        return settled

    def support(self, row: int) -> Support | None:
        """Support of a settled row."""
        if not self._healthy[row]:
            return None
        count = int(self._counts[row])
        if self._temperature[row] == 0.0:
            return Support(self._ids[row, :1].copy(), np.ones(1))
        return Support(self._ids[row, :count].copy(), self._probs[row, :count].copy())


def _order_ties(values: Floats, ids: Ints) -> tuple[Floats, Ints]:
    """Sorts by falling value and, where values are equal, by rising id."""
    if not (values[:, 1:] == values[:, :-1]).any():
        return values, ids
    order = np.lexsort((ids, -values), axis=-1)
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(ids, order, axis=1)
