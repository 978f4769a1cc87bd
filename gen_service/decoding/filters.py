"""Temperature, top-k, top-p and min-p: from logits to the support that they leave.

The result equals that of transformers' warpers applied in its order. No row is sorted: with a small top-k,
and where top-p or a grammar leaves few, the likeliest tokens are all that is looked at. Else the mass of the
others enters as the sum of their exponentials, and one of them is found when it is drawn. What comes out for
a row does not depend on the other rows, to the last bit.
"""

from collections.abc import Sequence

import torch

from ttmark.gen_service.decoding.filter_params import FilterParams
from ttmark.gen_service.decoding.filters_small_top_k import bounded_rows
from ttmark.gen_service.decoding.filters_top_p import open_rows
from ttmark.gen_service.decoding.support import Support

__all__ = ["FilterParams", "filter_rows"]

Supports = list[Support | None]


def filter_rows(logits: torch.Tensor, params: Sequence[FilterParams]) -> Supports:
    """Support of each row of `logits` ([rows, vocab], any float type) under its own filters.

    None stands for a row that holds NaN or has no finite maximum. Ties at the top-k boundary are all kept;
    where top-p has to choose between ties (transformers leaves that to its sort) the lower id stays.
    """
    supports: Supports = [None] * len(params)
    for bounded, supports_of in ((True, _bounded_supports), (False, _open_supports)):
        rows = [row for row, each in enumerate(params) if each.bounded is bounded]
        if rows:
            selected = logits if len(rows) == len(params) else logits[rows]
            for row, support in zip(rows, supports_of(selected, [params[row] for row in rows]), strict=True):
                supports[row] = support
    return supports


def _bounded_supports(logits: torch.Tensor, params: Sequence[FilterParams]) -> Supports:
    return bounded_rows(logits, params, [1] * len(params)).supports()


def _open_supports(logits: torch.Tensor, params: Sequence[FilterParams]) -> Supports:
    bounded, others = open_rows(logits, params)
    return [others.get(row, support) for row, support in enumerate(bounded.supports())]
