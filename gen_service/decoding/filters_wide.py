"""The filters of rows that may keep many tokens: a window of the likeliest, and the mass of the rest."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.support import (
    COLDEST,
    WINDOW,
    FilterParams,
    Floats,
    Ints,
    Support,
    Tail,
    window_weights,
)
from ttmark.gen_service.decoding.top_k import top_k

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
    values, ids = top_k(logits, min(WINDOW + 1, vocab))
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
