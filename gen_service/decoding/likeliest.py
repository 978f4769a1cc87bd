"""The likeliest tokens of every row, without sorting whole rows."""

import math

import torch

_WORTHWHILE = 8  # vocabulary over width from which on grouping saves time


def likeliest(logits: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and ids [rows, width] of the largest logits [rows, vocab], falling; of ties any.

    The columns are dealt into groups. A group whose maximum is not among the `width` largest maxima holds
    none of the `width` largest logits, so that the search goes on in the others alone.
    """
    rows, vocab = logits.shape
    if vocab < _WORTHWHILE * width:
        top = torch.topk(logits, width, dim=1)
        return top.values, top.indices
    size = 1 << round(math.log2(math.sqrt(vocab / width)))
    groups = vocab // size
    dealt = logits[:, : size * groups].view(rows, size, groups)
    chosen = torch.topk(dealt.amax(dim=1), width, dim=1).indices[:, None].expand(rows, size, width)
    first = torch.arange(size, device=logits.device)[None, :, None] * groups
    rest = torch.arange(size * groups, vocab, device=logits.device).expand(rows, -1)
    ids = torch.cat([(chosen + first).reshape(rows, size * width), rest], dim=1)
    candidates = torch.cat([dealt.gather(2, chosen).reshape(rows, -1), logits[:, size * groups :]], dim=1)
    top = torch.topk(candidates, width, dim=1)
    return top.values, ids.gather(1, top.indices)
