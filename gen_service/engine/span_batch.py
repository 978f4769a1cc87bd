"""Which cache rows the rows of a sequence attend to, and many such spans as one call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

_LONGEST = 1024
"""Cache rows up to which a copy of them costs less than a call of one's own."""


class Span(NamedTuple):
    """Some rows of the pass, one sequence's, attend to the `length` cache rows from `first` on.

    Attributes:
        mask: added to their scores, [rows * query heads per KV head, length]; None is nothing.
    """

    rows: int
    first: int
    length: int
    mask: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """Spans filled up to one number of rows and one length, so that one call attends to all of them.

    Attributes:
        queries: rows of each span, counted from the first row of all spans, [spans * rows].
        slots: cache rows of each span [spans * length].
        mask: added to the scores [spans, 1, rows * query heads per KV head, length]; None is nothing.
        places: where each of the rows lies among `queries`.
    """

    spans: int
    queries: torch.Tensor
    slots: torch.Tensor
    mask: torch.Tensor | None
    places: torch.Tensor


def batch_spans(
    spans: Sequence[Span], groups: int, device: torch.device, dtype: torch.dtype
) -> SpanBatch | None:
    """All spans as one batch; None where each is better served by a call of its own.

    Args:
        groups: query heads per KV head.
        dtype: of the mask.
    """
    lengths = torch.tensor([span.length for span in spans])
    if len(spans) < 2 or lengths.min() == 0 or lengths.max() > _LONGEST:
        return None
    rows = torch.tensor([span.rows for span in spans])
    most, longest = int(rows.max()), int(lengths.max())
    starts = rows.cumsum(0) - rows
    inside = torch.arange(most).expand(len(spans), most)
    queries = starts[:, None] + inside.minimum(rows[:, None] - 1)
    behind = torch.arange(longest).expand(len(spans), longest)
    first = torch.tensor([span.first for span in spans])
    slots = first[:, None] + behind.minimum(lengths[:, None] - 1)
    mask = None
    if lengths.min() < longest or any(span.mask is not None for span in spans):
        mask = torch.zeros(len(spans), most * groups, longest)
        mask.masked_fill_((behind >= lengths[:, None])[:, None], -torch.inf)
        for index, span in enumerate(spans):
            if span.mask is not None:
                mask[index, : span.rows * groups, : span.length] = span.mask
        mask = mask[:, None].to(device, dtype)
    return SpanBatch(
        len(spans),
        queries.flatten().to(device),
        slots.flatten().to(device),
        mask,
        (torch.arange(len(spans))[:, None] * most + inside)[inside < rows[:, None]].to(device),
    )
