"""Temperature, top-k, top-p and min-p: from logits to the support that they leave.

The result equals that of transformers' warpers applied in its order. No row is sorted: with a small top-k,
and where top-p or a grammar leaves few, the likeliest tokens are all that is looked at. Else the mass of the
others enters as the sum of their exponentials, and one of them is found when it is drawn. What comes out for
a row does not depend on the other rows, to the last bit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.filtered_tokens import (
    COLDEST,
    WINDOW,
    FilterParams,
    Floats,
    Ints,
    Support,
    Tail,
    top_k,
    window_weights,
)

_BUCKET_BITS = 16
_LOG2_E = math.log2(math.e)


def wide_supports(logits: torch.Tensor, params: Sequence[FilterParams]) -> list[Support | None]:
    """Support of each row of `logits` [rows, vocab]; None: not finite.

    The window of a row is what is larger than its 513th largest logit, so that it depends on the row alone.

    Args:
        params: of each row, none of them `bounded`.
    """
    values, ids, inside = _windows(logits)
    temperatures = np.array([p.temperature for p in params])
    healthy = np.isfinite(values[:, 0])
    every = window_weights(values, temperatures)
    weights = np.where(inside, every, 0.0)  # beside a peak of 1
    some = np.flatnonzero(every[:, -1] > 0.0)
    beyond = np.zeros(len(params))
    beyond[some] = weights_beyond(logits, some, values, temperatures, np.where(inside, ids, ids[:, :1]))
    supports: list[Support | None] = []
    for row, own in enumerate(params):
        if not healthy[row]:
            supports.append(None)
            continue
        count = int(inside[row].sum())
        tail = Tail(
            float(beyond[row]), logits[row], float(values[row, 0]), own.temperature, ids[row, :count].copy()
        )
        supports.append(_filtered(own, weights[row, :count], tail))
    return supports


def _windows(logits: torch.Tensor) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """Values and ids [rows, width] of the likeliest tokens, falling, and which of them are in the window."""
    vocab = logits.shape[1]
    values, ids, _ = top_k(logits, min(WINDOW + 1, vocab))
    if vocab <= WINDOW + 1:
        return values, ids, values > -np.inf
    inside = values > values[:, -1:]
    for row in np.flatnonzero(np.isfinite(values[:, 0]) & ~inside.any(axis=1)).tolist():
        # All that was found is equal: the lowest ids of all that are equal to it.
        equal = torch.nonzero(logits[row].float() == values[row, 0])[:WINDOW, 0].cpu().numpy()
        ids[row, : len(equal)], inside[row, : len(equal)] = equal, True
    return values, ids, inside


def weights_beyond(
    logits: torch.Tensor, rows: Ints, values: Floats, temperatures: Floats, windows: Ints
) -> Floats:
    """Sum of exp((logit - peak) / temperature) over the tokens of some `rows` that are not in their windows.

    Args:
        values: [all rows, width] the largest logits, falling.
        windows: [all rows, width] ids.
    """
    peaks, warmth = values[rows, 0], np.maximum(temperatures[rows], COLDEST)
    if logits.device.type != "cpu":
        peak, divisor, window = (
            torch.from_numpy(each).to(logits.device)
            for each in (peaks[:, None], warmth[:, None], windows[rows])
        )
        weights = (
            logits[torch.from_numpy(rows).to(logits.device)]
            .float()
            .sub(peak.float())
            .div_(divisor.float())
            .exp_()
        )
        sums: Floats = weights.scatter_(1, window, 0.0).sum(1, dtype=torch.float64).cpu().numpy()
        return sums
    # A row at a time stays in the cache, and is added up in the same order whatever the other rows are.
    buffer = torch.empty(logits.shape[1])
    weights_of_row, beyond = buffer.numpy(), np.empty(len(rows))
    for place, (row, peak, divisor) in enumerate(zip(rows, peaks.tolist(), warmth.tolist(), strict=True)):
        torch.sub(logits[row].float(), peak, out=buffer)
        # On a CPU torch's exp takes three times as long, and ten times where logits are minus infinity.
        buffer.mul_(_LOG2_E / divisor).exp2_()
        weights_of_row[windows[row]] = 0.0
        beyond[place] = buffer.sum().item()
    return beyond


def _filtered(params: FilterParams, weights: Floats, tail: Tail) -> Support:
    """The support that the filters leave of a window of `weights` [n] and the tail beyond it.

    Args:
        tail: with all that lies outside of the window, its mass in the unit of `weights`.
    """
    if params.top_k and tail.mass:
        tail = _cut_by_rank(tail, params.top_k)
    target = params.top_p * (float(weights.sum()) + tail.mass) if params.top_p < 1.0 else np.inf
    through = np.cumsum(weights)
    keep = (through - weights < target) & (weights >= params.min_p * weights[0]) & (weights > 0.0)
    keep[0] = True
    kept, ids = weights[keep], tail.window[keep]
    rest = tail.mass if keep.all() and through[-1] < target else 0.0
    if rest and (params.top_p < 1.0 or params.min_p):
        tail = _cut_by_mass(tail, float(target - through[-1]), params.min_p)
        rest = tail.mass
    whole = float(kept.sum()) + rest
    return Support(ids, kept / whole, replace(tail, mass=rest / whole) if rest else None)


def _cut_by_rank(tail: Tail, top_k: int) -> Tail:
    """The tail without what top-k forbids; ties of the last token stay."""
    row = tail.row.float().cpu().numpy()
    if top_k >= len(row):
        return tail
    return _with_mass(replace(tail, cut=(float(np.partition(row, -top_k)[-top_k]), np.inf)))


def _cut_by_mass(tail: Tail, target: float, least: float) -> Tail:
    """The tail without tokens of less weight than `least`, and up to the one with which it reaches `target`.

    Only the tokens of one bucket are sorted, that in which the target is reached.
    """
    weights = tail.weights()
    weights[weights < least] = 0.0
    # The upper half of a positive float's bits rises with it: buckets of less than a hundredth in width.
    buckets = weights.view(np.uint32) >> _BUCKET_BITS
    mass = np.bincount(buckets, weights=weights)
    above = mass.sum() - np.cumsum(mass)  # of the buckets over each one
    candidates = np.flatnonzero((mass > 0.0) & (above < target))
    if not candidates.size:
        return replace(tail, mass=0.0)
    bucket = candidates[0]
    ids = np.flatnonzero((buckets == bucket) & (weights > 0.0))
    logits = tail.row.float().cpu().numpy()[ids].astype(np.float64)
    order = np.lexsort((ids, -logits))
    before = above[bucket] + np.cumsum(weights[ids[order]], dtype=np.float64) - weights[ids[order]]
    last = order[np.flatnonzero((before < target) | (np.arange(len(order)) == 0))[-1]]
    return _with_mass(replace(tail, cut=(float(logits[last]), float(ids[last]))))


def _with_mass(tail: Tail) -> Tail:
    return replace(tail, mass=float(tail.weights().sum()))


Part = tuple[torch.Tensor, FilterParams]
"""Rows [rows, vocab], and the filters of all of them."""
Supports = list[Support | None]
"""Of each row; None: it is not finite."""


def filter_rows(logits: torch.Tensor, params: Sequence[FilterParams]) -> Supports:
    """Support of each row of `logits` ([rows, vocab], any float type) under its own filters.

    None stands for a row that holds NaN or has no finite maximum. Ties at the top-k boundary are all kept;
    where top-p has to choose between ties (transformers leaves that to its sort) the lower id stays.
    """
    supports: Supports = [None] * len(params)
    for bounded in (True, False):
        rows = [row for row, each in enumerate(params) if each.bounded is bounded]
        if rows:
            found = filter_parts([(logits[row : row + 1], params[row]) for row in rows], bounded=bounded)
            for row, part in zip(rows, found, strict=True):
                (supports[row],) = part.supports() if isinstance(part, BoundedRows) else part
    return supports


def filter_parts(parts: Sequence[Part], *, bounded: bool) -> list["BoundedRows | Supports"]:
    """What the filters leave of the rows of each part; all filters are `bounded`, or none is."""
    logits, params = zip(*parts, strict=True)
    counts = [len(rows) for rows in logits]
    together, bounds = _joined(logits, counts), pairwise(accumulate(counts, initial=0))
    if bounded:
        found = bounded_rows(together, params, counts)
        return [found.part(start, stop) for start, stop in bounds]
    own = [each for each, count in zip(params, counts, strict=True) for _ in range(count)]
    found, others = open_rows(together, own)
    results: list[BoundedRows | Supports] = []
    for start, stop in bounds:
        part = found.part(start, stop)
        if others.keys().isdisjoint(range(start, stop)):
            results.append(part)
        else:
            results.append([others.get(row, support) for row, support in enumerate(part.supports(), start)])
    return results


def _joined(parts: Sequence[torch.Tensor], counts: Sequence[int]) -> torch.Tensor:
    """Rows one after the other; no copy where they lie so already, as those of one pass do."""
    first = parts[0]
    start, strides = first.data_ptr(), first.stride()
    row_bytes = strides[0] * first.element_size()
    for part, count in zip(parts, counts, strict=True):
        if part.data_ptr() != start or part.stride() != strides:
            return torch.cat(list(parts))
        start += count * row_bytes
    if first.untyped_storage().data_ptr() != parts[-1].untyped_storage().data_ptr():
        return torch.cat(list(parts))
    return first.as_strided((sum(counts), first.shape[1]), strides)


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
        return BoundedRows(self.ids[start:stop], self.probs[start:stop], self.counts[start:stop])

    @classmethod
    def of_nothing(cls, rows: int) -> "BoundedRows":
        return cls(np.zeros((rows, 1), dtype=np.int64), np.zeros((rows, 1)), np.zeros(rows, dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence["BoundedRows"]) -> "BoundedRows":
        if len(parts) == 1:
            return parts[0]
        width = max(part.ids.shape[1] for part in parts)
        wide = [part._widened(width) for part in parts]
        return cls(*(np.concatenate([getattr(part, name) for part in wide]) for name in cls.__slots__))

    @property
    def finite(self) -> bool:
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
    values, ids, _ = top_k(logits, width)
    weights = window_weights(values, filters[0])
    last = np.minimum(filters[1].astype(np.int64), width) - 1
    ranked = values >= values[np.arange(rows), last][:, None]
    found = filter_window(weights, ids, ranked, filters, np.zeros(rows))
    # What equals the last token that top-k keeps may lie outside of the window. It counts where it has mass:
    # of a row in which a grammar leaves fewer tokens than top-k that last token is a forbidden one.
    settled = (width == vocab) | ~ranked[:, -1] | (weights[:, -1] == 0.0) | (found.counts == 0)
    return found, settled


_NARROW = 64


def open_rows(
    logits: torch.Tensor, params: Sequence[FilterParams]
) -> tuple[BoundedRows, dict[int, Support | None]]:
    """What the filters leave of each row of `logits` [rows, vocab]; most rows end in a narrow window.

    Args:
        params: of each row, none of them `bounded`.

    Returns:
        Rows that are bounded, and the supports of the others by the number of the row, of which the first
        hold nothing.
    """
    found = BoundedRows.of_nothing(len(params))
    settled = np.zeros(len(params), dtype=np.bool_)
    promising = np.flatnonzero([own.top_p < 1.0 or own.min_p > 0.0 for own in params])
    if promising.size:
        narrow, settled[promising] = _narrow(
            _rows(logits, promising), [params[row] for row in promising.tolist()]
        )
        found = found.replaced(promising, narrow) if len(narrow) < len(params) else narrow
    wide = np.flatnonzero(~settled)
    if not wide.size:
        return found, {}
    supports = wide_supports(_rows(logits, wide), [params[row] for row in wide.tolist()])
    return found, dict(zip(wide.tolist(), supports, strict=True))


def _narrow(logits: torch.Tensor, params: Sequence[FilterParams]) -> tuple[BoundedRows, NDArray[np.bool_]]:
    """What is left of the likeliest tokens; true for the rows that nothing is left of besides.

    The window of a row is what is larger than its 65th largest logit, so that it depends on the row alone.
    """
    filters = np.array([(p.temperature, p.top_k, p.top_p, p.min_p) for p in params]).T
    values, ids, groups = top_k(logits, min(_NARROW + 1, logits.shape[1]), grouped=True)
    inside = values > values[:, -1:]
    every = window_weights(values, filters[0])
    weights = np.where(inside, every, 0.0)
    most = every[:, -1] * logits.shape[1]
    if groups is not None and (some := np.flatnonzero(most > 0.0)).size:
        most[some] = groups.most_below(some, values, filters[0])
    through = np.cumsum(weights, axis=1)
    targets = [filters[2] * (through[:, -1] + beyond) for beyond in (np.zeros(len(values)), most)]
    first, last = ((through - weights < target[:, None]).sum(axis=1) for target in targets)
    # Where the least and the most that can lie beyond the window cut it in one place it is not added up.
    unsure = np.flatnonzero(first != last)
    if unsure.size:
        windows = np.where(inside, ids, ids[:, :1])
        most[unsure] = weights_beyond(logits, unsure, values, filters[0], windows)
    found = filter_window(weights, ids, inside, filters, most)
    cut = (found.counts < inside.sum(axis=1)) & (filters[1] == 0)  # a larger top-k changes the whole mass
    return found, inside[:, 0] & ((most == 0.0) | cut)


def _rows(logits: torch.Tensor, rows: Ints) -> torch.Tensor:
    """Some rows; no copy where it is all of them."""
    return logits if len(rows) == len(logits) else logits[torch.from_numpy(rows).to(logits.device)]
