"""What the filters leave of a row: its likeliest tokens, found without sorting, and their distribution."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.largest_logits import largest

WINDOW = 512
"""Tokens of a row that a support lists at most where the filters leave more."""


@dataclass(frozen=True, slots=True)
class FilterParams:
    """Filters of one row; temperature 0 leaves the likeliest token, top_k 0 and top_p 1 are off."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken, so that there is nothing to watermark."""
        return self.temperature == 0.0

    @property
    def bounded(self) -> bool:
        """Whether a few of the likeliest tokens are all that can be left."""
        return self.greedy or 0 < self.top_k <= WINDOW


# Below it a temperature is zero in float32; what differs from the likeliest has no mass before.
COLDEST = 1e-30

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tail:
    """What a row leaves beyond its window, looked at only when a token of it is drawn.

    Attributes:
        mass: its share of the support, above 0.
        row: [vocab] logits, as they were filtered.
        peak: the largest of them.
        temperature: above 0.
        window: [n] ids that are not part of it.
        cut: the last token that the filters keep, as (logit, id): of equal logits the lower ids stay. None
            keeps all that has mass.
    """

    mass: float
    row: torch.Tensor
    peak: float
    temperature: float
    window: Ints
    cut: tuple[float, float] | None = None

    def weights(self) -> NDArray[np.float32]:
        """Probabilities of its tokens beside a peak of 1, zero elsewhere, [vocab]."""
        row = self.row.float()
        weights = row.sub(self.peak).div_(max(self.temperature, COLDEST)).exp_().cpu().numpy()
        weights[self.window] = 0.0
        if self.cut is not None:
            logits, (value, last) = row.cpu().numpy(), self.cut
            weights[(logits < value) | ((logits == value) & (np.arange(len(logits)) > last))] = 0.0
        kept: NDArray[np.float32] = weights
        return kept

    def listed(self) -> tuple[Ints, Floats]:
        """Its tokens, by rising id, and their weights."""
        weights = self.weights().astype(np.float64)
        ids = np.flatnonzero(weights)
        return ids, weights[ids]


@dataclass(frozen=True, slots=True)
class Support:
    """Tokens with mass after the filters, likeliest first.

    Attributes:
        ids: [n] int64.
        probs: [n] float64, positive; with the mass of the tail they sum to 1.
        tail: less likely tokens that are not listed; None: there are none.
    """

    ids: Ints
    probs: Floats
    tail: Tail | None = None

    @property
    def tail_mass(self) -> float:
        return 0.0 if self.tail is None else self.tail.mass

    def probability(self, token: int) -> float:
        """Of one token; 0 where the filters leave it out."""
        listed = np.flatnonzero(self.ids == token)
        if listed.size:
            return float(self.probs[listed[0]])
        if self.tail is None:
            return 0.0
        weights = self.tail.weights().astype(np.float64)
        return float(weights[token] / weights.sum() * self.tail.mass)

    def draw(self, uniform: float) -> int:
        listed = float(self.probs.sum())
        target = uniform * (listed + self.tail_mass)
        if self.tail is None or target < listed:
            return int(self.ids[choose(self.probs, target / listed)])
        ids, weights = self.tail.listed()
        return int(ids[choose(weights, (target - listed) / self.tail.mass)])


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


def choose(probs: Floats, uniform: float) -> int:
    """Index drawn from `probs` ([n], not necessarily normalised) by inversion of the cumulative sum.

    Never returns an index without mass.
    """
    through = probs.cumsum()
    index = int(through.searchsorted(uniform * through[-1], side="right"))
    # Beyond the end by rounding alone; an index inside it has mass.
    return index if index < len(probs) else int(np.flatnonzero(probs)[-1])


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


def top_k(logits: torch.Tensor, width: int, *, grouped: bool = False) -> tuple[Floats, Ints, Groups | None]:
    """Values and ids [rows, width] of the largest logits [rows, vocab], falling, NaN first.

    Where values are equal the lower id comes first; of those that equal the last one any may be there.
    With them come the groups that were looked at; None: there are none, they are on a GPU, or nobody wants
    them `grouped`.

    The columns are dealt into groups. A group whose maximum is not among the `width` largest maxima holds
    none of the `width` largest logits, so that the search goes on in the others alone.
    """
    if not grouped and (found := largest(logits, width)) is not None:
        return *found, None
    rows, vocab = logits.shape
    groups_seen: Groups | None = None
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
            groups_seen = Groups(torch.cat([maxima, left_over], dim=1).numpy(), size)
    # One copy from the device for both: it is what a pass waits for.
    both = torch.stack([logits.gather(1, ids).float().view(torch.int32), ids.int()]).cpu().numpy()
    return *_in_order(both[0].view(np.float32), both[1]), groups_seen


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
