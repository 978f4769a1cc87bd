"""The likeliest tokens of every row, without sorting whole rows."""

import math

import numpy as np
import torch
from numpy.typing import NDArray

_WORTHWHILE = 8  # vocabulary over width from which on grouping saves time


def likeliest(logits: torch.Tensor, width: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Values and ids [rows, width] of the largest logits [rows, vocab], falling, NaN first; of ties any.

    The columns are dealt into groups. A group whose maximum is not among the `width` largest maxima holds
    none of the `width` largest logits, so that the search goes on in the others alone.
    """
    logits = logits.float()
    rows, vocab = logits.shape
    if vocab < _WORTHWHILE * width:
        ids = _largest(logits, width)
    else:
        size = 1 << round(math.log2(math.sqrt(vocab / width)))
        groups = vocab // size
        dealt = logits[:, : size * groups].view(rows, size, groups)
        chosen = _largest(dealt.amax(dim=1), width)[:, None].expand(rows, size, width)
        first = torch.arange(size, device=logits.device)[None, :, None] * groups
        rest = torch.arange(size * groups, vocab, device=logits.device).expand(rows, -1)
        candidates = torch.cat([(chosen + first).reshape(rows, size * width), rest], dim=1)
        ids = candidates.gather(1, _largest(logits.gather(1, candidates), width))
    # One copy from the device for both: it is what a pass waits for.
    both = torch.stack([logits.gather(1, ids).view(torch.int32), ids.int()]).cpu().numpy()
    values, columns = both[0].view(np.float32).astype(np.float64), both[1].astype(np.int64)
    order = np.argsort(values, axis=1)[:, ::-1]
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(columns, order, axis=1)


def _largest(values: torch.Tensor, width: int) -> torch.Tensor:
    """Columns [rows, width] of the largest values, in any order."""
    if values.device.type != "cpu":
        return torch.topk(values, width, dim=1, sorted=False).indices
    # numpy's selection takes half the time of torch's on a CPU.
    start = values.shape[1] - width
    return torch.from_numpy(np.argpartition(values.numpy(), start, axis=1)[:, start:])
