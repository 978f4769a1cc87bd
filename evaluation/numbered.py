"""Numbered repeats: a context that occurs again keys its block with a number, instead of being skipped.

An experiment on the context rule of `docs/spec.md`; the services do not have it (docs/adr/0015).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark import ContextTracker, Watermark, key_lanes
from ttmark.shared.watermark.contexts import occurrence_numbers, windows

WINDOW = 128
"""Tokens back to which occurrences of a context count."""


class NumberedTracker(ContextTracker):
    """The rule on the generation side: a context with its number; skipped where both were used before."""

    def next_context(self, tokens: Sequence[int]) -> tuple[int, ...] | None:
        """The H tokens before the block and how often they occurred in the last `WINDOW` tokens, [H + 1]."""
        width, end = self._context_width, len(tokens)
        if end < width:
            self.reason = "warm_up"
            return None
        own = tuple(tokens[end - width :])
        ends = range(max(width, end - WINDOW), end)
        numbered = *own, sum(tuple(tokens[stop - width : stop]) == own for stop in ends)
        used = self._first_use.setdefault(numbered, end) < end
        self.reason = "repeated_context" if used else None
        return None if used else numbered


class NumberedWatermark(Watermark):
    """A watermark whose contexts have a number as their last token."""

    def tracker(self) -> ContextTracker:
        """See `NumberedTracker`."""
        return NumberedTracker(self.block_size, self.context_width)


def context_numbers(tokens: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Earlier occurrences of the context before token `width` + i, for every i [L - width].

    Those count that end at most `WINDOW` tokens earlier, at a block boundary or not.
    """
    rows = windows(tokens, np.arange(tokens.size - width), width)
    seen: dict[bytes, list[int]] = {}
    numbers = []
    for position, row in enumerate(rows):
        before = seen.setdefault(row.tobytes(), [])
        numbers.append(sum(position - other <= WINDOW for other in before))
        before.append(position)
    return np.array(numbers, dtype=np.int64)


def numbered_rows(
    watermark: Watermark, tokens: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbered contexts [N, H + 1] and blocks [N, r] of the blocks that start at token H + i, for every i."""
    width, size = watermark.context_width, watermark.block_size
    starts = np.arange(width, tokens.size - size + 1)
    numbers = context_numbers(tokens, width)[: starts.size]
    contexts = np.column_stack([windows(tokens, starts - width, width), numbers])
    return contexts, windows(tokens, starts, size)


def numbered_direct(watermark: Watermark, key: bytes, tokens: NDArray[np.int64]) -> tuple[float, int]:
    """log10 p of the blocks from the start of a completion on, and how many were scored."""
    width, size = watermark.context_width, watermark.block_size
    contexts, blocks = numbered_rows(watermark, tokens)
    first = watermark.warmup_blocks * size - width
    contexts, blocks = contexts[first::size], blocks[first::size]
    new = occurrence_numbers(contexts) == 0
    scores = watermark.score(key_lanes(key), contexts[new], blocks[new])
    return watermark.log10_p_value(float(scores.sum()), len(scores)), len(scores)


def numbered_position_scores(
    watermark: Watermark, key: bytes, tokens: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Standardised scores of the blocks at every position, as `position_scores` has them, [L - H - r + 1]."""
    contexts, blocks = numbered_rows(watermark, tokens)
    occurrences = occurrence_numbers(np.concatenate([contexts, blocks], axis=1))
    return watermark.standardize(watermark.score(key_lanes(key), contexts, blocks, occurrences))
