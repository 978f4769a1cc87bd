"""Which blocks are keyed, and by what: the H tokens before a block, each context once.

The generator (`ContextTracker`) and the detector (`scored_positions`) follow the same rule; see
`docs/spec.md`, section "Contexts".
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.prf import TOKEN_BITS

Reason = Literal["warm_up", "repeated_context"]


def warmup_blocks(block_size: int, context_width: int) -> int:
    """Blocks at the start of a completion that have no full context: ceil(H / r)."""
    return -(-context_width // block_size)


class ContextTracker:
    """The context rule on the generation side; one tracker per completion."""

    def __init__(self, block_size: int, context_width: int) -> None:
        self.reason: Reason | None = None
        """Why the last `next_context` gave None."""
        self._block_size = block_size
        self._context_width = context_width
        self._first_use: dict[tuple[int, ...], int] = {}

    def next_context(self, tokens: Sequence[int]) -> tuple[int, ...] | None:
        """The context that keys the block after `tokens`, or None for a block without watermark.

        `tokens` is the completion so far and ends at a block boundary. Asking again for the same
        completion gives the same answer. Raises ValueError inside a block.
        """
        length = len(tokens)
        if length % self._block_size:
            raise ValueError(f"{length} tokens do not end at a boundary of blocks of {self._block_size}")
        if length < self._context_width:
            self.reason = "warm_up"
            return None
        context = tuple(tokens[length - self._context_width :])
        if self._first_use.get(context, length) < length:
            self.reason = "repeated_context"
            return None
        self._first_use[context] = length
        self.reason = None
        return context


def scored_positions(
    tokens: Sequence[int] | NDArray[np.int64], block_size: int, context_width: int, phase: int = 0
) -> NDArray[np.int64]:
    """Starts of the blocks that a detector scores: complete, after the warm-up, contexts new.

    `phase` is the offset of the block boundaries, 0 <= phase < block_size. Of blocks with equal
    contexts the first alone is scored.
    """
    tokens = np.asarray(tokens, dtype=np.int64)
    first = phase + block_size * max(0, -(-(context_width - phase) // block_size))
    starts = np.arange(first, tokens.size - block_size + 1, block_size)
    if starts.size == 0:
        return starts
    contexts = windows(tokens, starts - context_width, context_width)
    scored: NDArray[np.int64] = starts[first_occurrences(contexts)]
    return scored


def windows(tokens: NDArray[np.int64], starts: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """The `width` tokens from each of `starts` [N] on -> [N, width]."""
    rows: NDArray[np.int64] = tokens[starts[:, None] + np.arange(width)]
    return rows


def first_occurrences(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending numbers of the rows [N, T] that equal no earlier one; quicker for a text than sorting."""
    keys = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()
    first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    return np.array(sorted(first.values()), dtype=np.int64)


def occurrence_numbers(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many earlier rows equal each row of token matrix `rows` [N, T] -> [N], 0 for a first one."""
    count, width = rows.shape
    packed = [rows[:, i] | (rows[:, i + 1] << TOKEN_BITS) for i in range(0, width - 1, 2)]
    if width % 2:
        packed.append(rows[:, -1])
    order = np.lexsort(packed)  # stable: equal rows keep their order
    is_first = np.zeros(count, dtype=np.bool_)
    is_first[:1] = True
    for column in packed:
        ordered = column[order]
        is_first[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.arange(count)
    numbers = np.empty(count, dtype=np.int64)
    numbers[order] = ranks - np.maximum.accumulate(np.where(is_first, ranks, 0))
    return numbers
