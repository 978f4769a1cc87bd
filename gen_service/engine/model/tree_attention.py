"""What the commits and probes of a pass attend to, and the compiled kernel that attends for them on a CPU."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.engine.native import Kernels


@dataclass(frozen=True, slots=True)
class TreeAttention:
    """What the kernel needs to know of a pass.

    Attributes:
        tiles: [tiles, 4] int32 under a sliding window and for a number of query heads per KV head: rows
            [start, stop) attend to cache rows [first, last).
        own: [rows, depth] int32, the tree rows that each tree row attends to, -1 for none.
    """

    kernels: Kernels
    tiles: Callable[[int | None, int], torch.Tensor]
    own: torch.Tensor

    def __call__(
        self,
        query: torch.Tensor,
        key_value: torch.Tensor,
        cache: torch.Tensor,
        window: int | None,
        scale: float,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention of the tree rows -> [tree_rows, heads, dim].

        Args:
            query: [tree_rows, heads, dim].
            key_value: of the same rows, [tree_rows, 2, kv_heads, dim].
            cache: [capacity, 2, kv_heads, dim].
            sinks: float32 [heads]; see `attend`.
        """
        tiles = self.tiles(window, query.shape[1] // key_value.shape[2])
        (key, value), (keys, values) = key_value.unbind(1), cache.unbind(1)
        return self.kernels.attend(query, key, value, keys, values, tiles, self.own, scale, sinks)


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
class TokenTree:
    """The rows of one commit or probe: tokens after `position` tokens that are cached from `base` on.

    Attributes:
        depths: how many rows stand at `position`, at the position after it, and so on.
        is_commit: the rows are a chain of tokens that are cached themselves.
    """

    depths: tuple[int, ...]
    base: int
    position: int
    is_commit: bool = False


def spans_of(
    trees: Iterable[TokenTree], window: int | None, groups: int, device: torch.device
) -> tuple[Span, ...]:
    """Spans of the trees in their order, under a sliding window (None: full attention).

    Args:
        groups: query heads per KV head; each row of a mask comes that many times.
    """
    masks = _CausalMasks(groups, device)
    spans: list[Span] = []
    for tree in trees:
        if tree.is_commit:
            spans.append(_of_commit(tree, window, masks))
        else:
            spans += _of_probe(tree, window)
    return tuple(spans)


def prefixes_of(trees: Iterable[TokenTree], window: int | None) -> list[tuple[int, int, int, int]]:
    """For each tree (start, stop, first, last): its rows, counted from 0, see the cache rows before it."""
    prefixes: list[tuple[int, int, int, int]] = []
    start = 0
    for tree in trees:
        for span in _of_probe(tree, window):
            prefixes.append((start, start + span.rows, span.first, span.first + span.length))
            start += span.rows
    return prefixes


def visible(position: int, end: int, first: int, window: int | None) -> torch.Tensor:
    """True where the query at a position in [position, end) sees the key at one in [first, end)."""
    behind = torch.arange(position, end)[:, None] - torch.arange(first, end)
    seen = behind >= 0
    return seen if window is None else seen & (behind < window)


def _of_commit(tree: TokenTree, window: int | None, masks: "_CausalMasks") -> Span:
    count, end = len(tree.depths), tree.position + len(tree.depths)
    first = 0 if window is None else max(0, tree.position + 1 - window)
    mask = None
    if count > 1 and (window is None or end <= window):
        mask = masks.of(count, end)
    elif count > 1:
        mask = masks.additive(visible(tree.position, end, first, window))
    return Span(count, tree.base + first, end - first, mask)


def _of_probe(tree: TokenTree, window: int | None) -> list[Span]:
    """One span, or under a window that begins elsewhere for each depth one per depth."""
    length = tree.position
    if window is None or length + len(tree.depths) <= window:
        return [Span(sum(tree.depths), tree.base, length)]
    starts = [min(length, max(0, length + depth + 1 - window)) for depth in range(len(tree.depths))]
    return [
        Span(rows, tree.base + start, length - start) for rows, start in zip(tree.depths, starts, strict=True)
    ]


class _CausalMasks:
    """Masks of the last `count` tokens of a text, cut from one mask for each count."""

    def __init__(self, groups: int, device: torch.device) -> None:
        self._groups = groups
        self._device = device
        self._longest: dict[int, torch.Tensor] = {}

    def of(self, count: int, length: int) -> torch.Tensor:
        """[count * groups, length]"""
        mask = self._longest.get(count)
        if mask is None or mask.shape[1] < length:
            size = 2 * length
            mask = self._longest[count] = self.additive(visible(size - count, size, 0, None))
        return mask.narrow(1, mask.shape[1] - length, length)

    def additive(self, seen: torch.Tensor) -> torch.Tensor:
        """[rows, keys] -> [rows * groups, keys] with minus infinity where a row does not see a key."""
        mask = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)
        return mask.repeat_interleave(self._groups, dim=0).to(self._device)


def tile_spans(spans: Iterable[tuple[int, int, int, int]], step: int) -> NDArray[np.int64]:
    """Cuts spans (start, stop, first, last) into tiles [tiles, 4] of at most `step` rows."""
    tiles = [
        (row, min(row + step, stop), first, last)
        for start, stop, first, last in spans
        for row in range(start, stop, step)
    ]
    return np.array(tiles, dtype=np.int64).reshape(-1, 4)
