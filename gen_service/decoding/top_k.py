"""Top-k selection: the largest logits of every row, without sorting whole rows."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.support import COLDEST, Floats, Ints

_WORTHWHILE = 8  # vocabulary over width from which on grouping saves time
_FEWER_CANDIDATES = 0.5  # groups are cheaper to choose from than candidates, which have to be gathered
_IN_CACHE = 1 << 18  # numbers
_ROUNDING = 1.001  # of sums in float32, upwards
_BITS = np.int32(0x7FFFFFFF)  # of a float below its sign
_LARGEST_ID = np.int64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Groups:
    """The columns of some rows, dealt into groups of `size`, and those that were left over.

    Attributes:
        maxima: [rows, groups + left over] the largest logit of each group.
    """

    maxima: NDArray[np.float32]
    size: int

    def most_below(self, rows: Ints, values: Floats, temperatures: Floats) -> Floats:
        """At least the sum of exp((logit - peak) / temperature) over the logits of `rows` below the window.

        Args:
            values: [all rows, width] the largest logits, falling: the window ends with the last.
        """
        last, peaks, warmth = (
            each[rows, None].astype(np.float32)
            for each in (values[:, -1], values[:, 0], np.maximum(temperatures, COLDEST))
        )
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.minimum(self.maxima[rows], last)
            scaled -= peaks
            scaled /= warmth
            most: Floats = np.exp(scaled, out=scaled).sum(axis=1, dtype=np.float64)
        return most * (self.size * _ROUNDING)


def top_k(logits: torch.Tensor, width: int) -> tuple[Floats, Ints]:
    """Values and ids [rows, width] of the largest logits [rows, vocab], falling, NaN first.

    Where values are equal the lower id comes first; of those that equal the last one any may be there.
    """
    values, ids, _ = top_k_of_groups(logits, width)
    return values, ids


def top_k_of_groups(logits: torch.Tensor, width: int) -> tuple[Floats, Ints, Groups | None]:
    """`top_k`, and the groups that were looked at; None: there are none, or they are on a GPU.

    The columns are dealt into groups. A group whose maximum is not among the `width` largest maxima holds
    none of the `width` largest logits, so that the search goes on in the others alone.
    """
    rows, vocab = logits.shape
    grouped: Groups | None = None
    if vocab < _WORTHWHILE * width:
        logits = logits.float()
        ids = _largest(logits, width)
    else:
        size = 1 << round(math.log2(math.sqrt(vocab / width) * _FEWER_CANDIDATES))
        groups = vocab // size
        maxima = _maxima(logits, size, groups)
        chosen = _largest(maxima, width)[:, None].expand(rows, size, width)
        first = torch.arange(size, device=logits.device)[None, :, None] * groups
        rest = torch.arange(size * groups, vocab, device=logits.device).expand(rows, -1)
        candidates = torch.cat([(chosen + first).reshape(rows, size * width), rest], dim=1)
        ids = candidates.gather(1, _largest(logits.gather(1, candidates).float(), width))
        if logits.device.type == "cpu":
            left_over = logits[:, size * groups :].float()
            grouped = Groups(torch.cat([maxima, left_over], dim=1).numpy(), size)
    # One copy from the device for both: it is what a pass waits for.
    both = torch.stack([logits.gather(1, ids).float().view(torch.int32), ids.int()]).cpu().numpy()
    return *_in_order(both[0].view(np.float32), both[1]), grouped


def _maxima(logits: torch.Tensor, size: int, groups: int) -> torch.Tensor:
    """The largest logit of each group, [rows, groups] float32; a group is every `groups`-th column."""
    rows = logits.shape[0]
    dealt = logits[:, : size * groups].view(rows, size, groups)
    if dealt.device.type != "cpu":
        return dealt.amax(dim=1).float()
    # A few rows at a time stay in the cache; a half format is widened there, for it has no fast maximum.
    step = max(1, _IN_CACHE // (size * groups))
    wide = None if dealt.dtype == torch.float32 else torch.empty((min(step, rows), size, groups))
    maxima = torch.empty((rows, groups))
    for start in range(0, rows, step):
        part = dealt[start : start + step]
        if wide is not None:
            part = wide[: len(part)].copy_(part)
        torch.amax(part, dim=1, out=maxima[start : start + step])
    return maxima


def _in_order(values: NDArray[np.float32], ids: NDArray[np.int32]) -> tuple[Floats, Ints]:
    """Sorts each row by falling value, NaN first, and rising id where values are equal.

    Value and id are sorted as one integer: the bits of a float, those below the sign turned round where it is
    negative, rise with it.
    """
    bits = (values + np.float32(0.0)).view(np.int32)  # the sum makes -0 and 0 the same
    rising = np.where(np.isnan(values), _BITS, bits ^ ((bits >> 31) & _BITS)).astype(np.int64)
    keys = np.sort((rising << 32) | (_LARGEST_ID - ids.astype(np.int64)), axis=1)[:, ::-1]
    rising = (keys >> 32).astype(np.int32)
    ordered = np.ascontiguousarray(rising ^ ((rising >> 31) & _BITS)).view(np.float32)
    return ordered.astype(np.float64), _LARGEST_ID - (keys & _LARGEST_ID)


def _largest(values: torch.Tensor, width: int) -> torch.Tensor:
    """Columns [rows, width] of the largest values, in any order."""
    if values.device.type != "cpu":
        return torch.topk(values, width, dim=1, sorted=False).indices
    numbers = values.numpy()
    possible = numbers != -np.inf
    # numpy's selection takes half the time of torch's on a CPU, but ten times as long among equal numbers,
    # which are most of a row where a grammar leaves few tokens.
    dense = 2 * np.count_nonzero(possible, axis=1) >= numbers.shape[1]
    start = numbers.shape[1] - width
    if dense.all():
        return torch.from_numpy(np.argpartition(numbers, start, axis=1)[:, start:])
    columns = np.empty((len(numbers), width), dtype=np.int64)
    columns[dense] = np.argpartition(numbers[dense], start, axis=1)[:, start:]
    for row in np.flatnonzero(~dense).tolist():
        found = np.flatnonzero(possible[row])
        if len(found) > width:
            found = found[np.argpartition(numbers[row, found], -width)[-width:]]
        columns[row, : len(found)] = found
        columns[row, len(found) :] = np.flatnonzero(~possible[row])[: width - len(found)]
    return torch.from_numpy(columns)
