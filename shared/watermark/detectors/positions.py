"""Scores of the blocks that start at every position of a text, for the detectors that align."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.contexts import occurrence_numbers
from ttmark.shared.watermark.detectors.tokens import context_and_block
from ttmark.shared.watermark.pauses import pause
from ttmark.shared.watermark.pool_scores import scores_under_each
from ttmark.shared.watermark.prf import key_lanes
from ttmark.shared.watermark.redrawn import Redrawn, RowKeys
from ttmark.shared.watermark.watermark import Watermark

# Odd 64-bit constants of a multiplicative hash (the fractional part of the golden ratio).
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def position_scores(
    watermark: Watermark, prf_key: bytes, tokens: NDArray[np.int64], redrawn: Redrawn | None = None
) -> NDArray[np.float64]:
    """Standardised score z of the block that starts at token H + i, for every i: [L - H - r + 1].

    Without watermark the scores are independent and identically distributed whatever the text is:
    a (context, block) that occurs again is scored with fresh words (`Watermark.score`). The null of
    any statistic of them therefore depends on their number alone. Rows that are `redrawn` keep it.
    """
    width = watermark.context_width
    starts = np.arange(width, tokens.size - watermark.block_size + 1)
    contexts, blocks = context_and_block(watermark, tokens, starts)
    occurrences = occurrence_numbers(np.concatenate([contexts, blocks], axis=1))
    lanes = np.tile(key_lanes(prf_key), (starts.size, 1))
    if redrawn is not None:
        lanes[redrawn.rows] = redrawn.lanes
    return watermark.standardize(watermark.score(lanes, contexts, blocks, occurrences))


@dataclass(frozen=True, slots=True, eq=False)
class PositionRows:
    """Every position of several texts, to be scored together under any key.

    Attributes:
        contexts, blocks: [N, H] and [N, r], text after text.
        occurrences: [N] how many earlier rows of the same text are equal.
        ends: [texts] one past the last row of each text.
        row_keys: of the rows that are redrawn.
    """

    contexts: NDArray[np.int64]
    blocks: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    ends: NDArray[np.int64]
    row_keys: RowKeys | None = None

    @classmethod
    def of(
        cls,
        watermark: Watermark,
        texts: Sequence[NDArray[np.int64]],
        redrawn: Sequence[Redrawn | None] | None = None,
    ) -> "PositionRows":
        """The rows that `position_scores` scores, for each of the texts."""
        width, size = watermark.context_width, watermark.block_size
        sizes = np.array([max(0, tokens.size - width - size + 1) for tokens in texts], dtype=np.int64)
        ends = np.cumsum(sizes)
        # Row i of a text starts at its token H + i.
        first = np.cumsum([0, *(tokens.size for tokens in texts)])[:-1] + width
        starts = np.arange(int(sizes.sum())) + np.repeat(first - (ends - sizes), sizes)
        tokens = np.concatenate(texts)
        # By columns: the PRF reads a token of every row at a time.
        rows = np.empty((width + size, starts.size), dtype=np.int64).T
        for column in range(width + size):
            pause()
            rows[:, column] = tokens[starts + (column - width)]
        occurrences = _occurrences_within(np.repeat(np.arange(sizes.size), sizes), rows)
        row_keys = None
        if redrawn is not None:
            row_keys = RowKeys.of([(one, np.arange(n)) for one, n in zip(redrawn, sizes, strict=True)])
        return cls(rows[:, :width], rows[:, width:], occurrences, ends, row_keys)

    def scores_under_each(
        self, watermark: Watermark, prf_keys: Sequence[bytes], rows: int
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The `position_scores` of the texts, one after the other, under some keys at a time.

        Which keys, and scores [keys, N]: about `rows` in all, but those of one key at least.
        """
        parts = self.contexts, self.blocks, self.occurrences
        for keys, scores in scores_under_each(watermark, prf_keys, *parts, rows=rows, row_keys=self.row_keys):
            yield keys, watermark.standardize(scores)


def _occurrences_within(texts: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """`occurrence_numbers` of `rows` [N, T] among those of the same text [N].

    Equal rows have equal hashes, so that only rows whose hash is not alone need a closer look.
    """
    hashes = texts.astype(np.uint64)
    for column in rows.T:
        pause()
        hashes ^= column.view(np.uint64)
        hashes *= _MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
    ordered = np.sort(hashes)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    numbers = np.zeros(texts.size, dtype=np.int64)
    if shared.size:
        pause()
        candidates = np.flatnonzero(np.isin(hashes, shared))
        numbers[candidates] = occurrence_numbers(np.column_stack([texts[candidates], rows[candidates]]))
    return numbers
