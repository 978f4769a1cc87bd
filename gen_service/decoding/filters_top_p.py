"""The filters of rows without a small top-k: most of them end in a narrow window all the same."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.filter_params import FilterParams
from ttmark.gen_service.decoding.filters_small_top_k import BoundedRows, filter_window, window_weights
from ttmark.gen_service.decoding.filters_wide import weights_beyond, wide_supports
from ttmark.gen_service.decoding.support import Ints, Support
from ttmark.gen_service.decoding.top_k import top_k_of_groups

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
    values, ids, groups = top_k_of_groups(logits, min(_NARROW + 1, logits.shape[1]))
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
