"""The filters of rows of which a few of the likeliest tokens are left, all rows at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.filter_params import FilterParams
from ttmark.gen_service.decoding.support import Floats, Ints, Support
from ttmark.gen_service.decoding.top_k import top_k

_TIE_MARGIN = 16
_GROWTH = 4


@dataclass(frozen=True, slots=True)
class BoundedRows:
    """What the filters leave of some rows, likeliest first.

    Attributes:
        ids: [rows, width].
        probs: [rows, width]; a row sums to 1.
        counts: [rows] tokens that are left, the first of each row; the others have no probability. 0: the
            row is not finite.
    """

    ids: Ints
    probs: Floats
    counts: Ints

    def __len__(self) -> int:
        return len(self.counts)

    def part(self, start: int, stop: int) -> "BoundedRows":
        """Some of the rows, as views."""
        return BoundedRows(self.ids[start:stop], self.probs[start:stop], self.counts[start:stop])

    @classmethod
    def of_nothing(cls, rows: int) -> "BoundedRows":
        """Rows that hold no token."""
        return cls(np.zeros((rows, 1), dtype=np.int64), np.zeros((rows, 1)), np.zeros(rows, dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence["BoundedRows"]) -> "BoundedRows":
        """The rows of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        width = max(part.ids.shape[1] for part in parts)
        wide = [part._widened(width) for part in parts]
        return cls(*(np.concatenate([getattr(part, name) for part in wide]) for name in cls.__slots__))

    @property
    def finite(self) -> bool:
        """Whether all rows are."""
        return bool(self.counts.all())

    def draw(self, uniforms: Floats) -> list[tuple[int, float]]:
        """A token of each row by inversion of the cumulative sum, and its probability.

        Args:
            uniforms: [rows] in [0, 1).
        """
        through = np.cumsum(self.probs, axis=1)
        drawn = (through <= uniforms[:, None] * through[:, -1:]).sum(axis=1)
        places = np.arange(len(self)), np.minimum(drawn, self.counts - 1)
        return list(zip(self.ids[places].tolist(), self.probs[places].tolist(), strict=True))

    def supports(self) -> list[Support | None]:
        """Support of each row; None: not finite."""
        return [
            Support(self.ids[row, :count].copy(), self.probs[row, :count].copy()) if count else None
            for row, count in enumerate(self.counts.tolist())
        ]

    def replaced(self, rows: Ints, by: "BoundedRows") -> "BoundedRows":
        """The same with other `rows`."""
        width = max(self.ids.shape[1], by.ids.shape[1])
        result, wide = self._widened(width), by._widened(width)
        ids, probs, counts = result.ids.copy(), result.probs.copy(), result.counts.copy()
        ids[rows], probs[rows], counts[rows] = wide.ids, wide.probs, wide.counts
        return BoundedRows(ids, probs, counts)

    def _widened(self, width: int) -> "BoundedRows":
        missing = ((0, 0), (0, width - self.ids.shape[1]))
        if not missing[1][1]:
            return self
        return BoundedRows(np.pad(self.ids, missing), np.pad(self.probs, missing), self.counts)


def bounded_rows(logits: torch.Tensor, params: Sequence[FilterParams], counts: Sequence[int]) -> BoundedRows:
    """What the filters leave of each row of `logits` [rows, vocab].

    Args:
        params: all of them `bounded`.
        counts: of rows that each of `params` holds for, one group after the other.
    """
    vocab = logits.shape[1]
    own = [(p.temperature, 1 if p.greedy else p.top_k, p.top_p, p.min_p) for p in params]
    filters = np.repeat(np.array(own).T, counts, axis=1)  # [4, rows]
    width = min(int(filters[1].max()) + _TIE_MARGIN, vocab)
    found, settled = _within(logits, width, filters)
    pending = np.flatnonzero(~settled)
    while pending.size:
        width = min(vocab, width * _GROWTH)
        selected = logits[torch.from_numpy(pending).to(logits.device)]
        wider, settled = _within(selected, width, filters[:, pending])
        found = found.replaced(pending, wider)
        pending = pending[~settled]
    return found


def window_weights(values: Floats, temperatures: Floats) -> Floats:
    """exp((value - peak) / temperature), [rows, width], of falling `values`; NaN in a row that is not finite.

    Args:
        temperatures: [rows]; 0 counts as 1.
    """
    warmth = np.where(temperatures == 0.0, 1.0, temperatures)[:, None]
    # A temperature next to zero makes the quotient infinite, which is right: such a token has no mass.
    with np.errstate(invalid="ignore", over="ignore"):
        weights: Floats = np.exp((values - values[:, :1]) / warmth)
    return weights


def filter_window(
    weights: Floats, ids: Ints, ranked: NDArray[np.bool_], filters: Floats, beyond: Floats
) -> BoundedRows:
    """Applies the filters to the likeliest tokens of each row.

    Args:
        weights, ids: [rows, width], falling.
        ranked: of these, what top-k keeps.
        filters: temperature, top-k, top-p and min-p of each row, [4, rows].
        beyond: [rows] weight of what top-k keeps outside of the window.
    """
    temperature, _, top_p, min_p = filters[:, :, None]
    with np.errstate(invalid="ignore"):
        # np.cumsum adds from left to right, so trailing zeros, and with them the width, change nothing
        mass = np.where(ranked, weights, 0.0)
        mass /= np.cumsum(mass, axis=1)[:, -1:] + beyond[:, None]
        before = np.cumsum(mass, axis=1) - mass
        keep = ranked & ((before < top_p) | (top_p >= 1.0))
        keep[:, 0] = True
        keep &= mass >= min_p * mass[:, :1]
        keep &= mass > 0.0
        keep[:, 1:] &= temperature != 0.0
        mass = np.where(keep, mass, 0.0)
        probs = mass / np.cumsum(mass, axis=1)[:, -1:]
    counts = np.where(weights[:, 0] == 1.0, keep.sum(axis=1), 0)
    most = max(1, int(counts.max()))
    return BoundedRows(ids[:, :most], probs[:, :most], counts)


def _within(logits: torch.Tensor, width: int, filters: Floats) -> tuple[BoundedRows, NDArray[np.bool_]]:
    """What is left of the `width` likeliest tokens; true for the rows that nothing is left of besides."""
    rows, vocab = logits.shape
    values, ids = top_k(logits, width)
    weights = window_weights(values, filters[0])
    last = np.minimum(filters[1].astype(np.int64), width) - 1
    ranked = values >= values[np.arange(rows), last][:, None]
    found = filter_window(weights, ids, ranked, filters, np.zeros(rows))
    # What equals the last token that top-k keeps may lie outside of the window. It counts where it has mass:
    # of a row in which a grammar leaves fewer tokens than top-k that last token is a forbidden one.
    settled = (width == vocab) | ~ranked[:, -1] | (weights[:, -1] == 0.0) | (found.counts == 0)
    return found, settled
