"""How much of what can be drawn is the model's own choice, beside biases, penalties and grammar."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.filters import BoundedRows
from ttmark.gen_service.decoding.support import Floats, Support

LEAST_SHARE = 0.25
"""Of the model's own choice in each branch of a block that is marked: docs/adr/0092."""


def least_share(own: torch.Tensor, changed: torch.Tensor, left: BoundedRows | Sequence[Support]) -> float:
    """The least share of the model's own choice in any of the rows.

    In one row it is the sum of min(p, q) over the tokens that the filters leave, divided by their sum of q: p
    is the model's own probability of a token, q the one that the caller's restrictions have made of it, both
    over the whole vocabulary, at temperature 1 and before the filters. Where a grammar forbids all but some
    tokens, that is what the model gives to these. Where one token alone is left nothing is chosen, by nobody,
    and the share is 1.

    Args:
        own: the model's logits [rows, vocab].
        changed: the same after bias, penalties and grammar.
        left: what the filters leave of `changed`.
    """
    if isinstance(left, BoundedRows):
        ids, listed = left.ids, np.arange(left.ids.shape[1]) < left.counts[:, None]
    else:
        ids, listed = _padded([support.ids for support in left])
    open_rows = listed.sum(axis=1) > 1
    if not open_rows.any():
        return 1.0
    places = torch.from_numpy(ids).to(own.device)
    mine, theirs = (_probabilities(logits, places) for logits in (own, changed))
    kept = np.where(listed, np.minimum(mine, theirs), 0.0).sum(axis=1)
    whole = np.where(listed, theirs, 0.0).sum(axis=1)
    return float((kept[open_rows] / whole[open_rows]).min())


def _probabilities(logits: torch.Tensor, ids: torch.Tensor) -> Floats:
    """Of `ids` [rows, width] in the softmax of `logits` [rows, vocab]."""
    whole = logits.float().logsumexp(dim=1, keepdim=True)
    found: Floats = (logits.gather(1, ids).float() - whole).exp().double().cpu().numpy()
    return found


def _padded(rows: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Ids [rows, width] and which of them are there."""
    listed = np.arange(max(map(len, rows))) < np.array([[len(ids)] for ids in rows])
    padded = np.zeros(listed.shape, dtype=np.int64)
    padded[listed] = np.concatenate(rows)
    return padded, listed
