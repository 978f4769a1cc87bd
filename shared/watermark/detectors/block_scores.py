"""Scores of the blocks of a text: at every position, under many keys, or at fixed boundaries.

At fixed boundaries they are direct detection, with an exact p-value (paper, Eq. 6). Under many keys the PRF
runs over keys and blocks at once. SipHash begins with the key, so nothing of a message can be absorbed once
for all keys. What is saved is the cost of a call, which for the few hundred blocks of a usual text is most of
it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.interruption import STEPS, pause
from ttmark.shared.watermark.null_replacement import Redrawn, RowKeys
from ttmark.shared.watermark.nulls import corrected
from ttmark.shared.watermark.prf import TOKEN_MASK, key_lanes, occurrence_numbers, scored_positions, windows
from ttmark.shared.watermark.schemes.watermark import Watermark

# Scores of all positions of a text that are made at once under the keys of a pool.
POSITION_SCORES = 65536


def scores_under_each(
    watermark: Watermark,
    prf_keys: Sequence[bytes],
    contexts: NDArray[np.int64],
    blocks: NDArray[np.int64],
    occurrences: NDArray[np.int64] | None = None,
    *,
    rows: int = STEPS,
    row_keys: RowKeys | None = None,
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """`Watermark.score` of the blocks [N] under run after run of the keys: which keys, scores [run, N].

    A run has as many keys as make about `rows` scores, and at least one: memory does not grow with the keys.
    Those of `row_keys` have keys of their own, whatever the pool's are.
    """
    count = len(contexts)
    run = max(1, min(len(prf_keys), rows // max(1, count)))
    lanes = np.array([key_lanes(prf_key) for prf_key in prf_keys]).reshape(-1, 2)
    if run > 1:
        # By columns, as the PRF reads them.
        contexts, blocks = np.tile(contexts.T, run).T, np.tile(blocks.T, run).T
        occurrences = None if occurrences is None else np.tile(occurrences, run)
    for first in range(0, len(prf_keys), run):
        keys = slice(first, min(first + run, len(prf_keys)))
        size = keys.stop - first
        own = slice(size * count)
        of_each = np.repeat(lanes[keys], count, axis=0)
        if row_keys is not None:
            row_keys.put_into(of_each.reshape(size, count, 2))
        again = None if occurrences is None else occurrences[own]
        yield keys, watermark.score(of_each, contexts[own], blocks[own], again).reshape(size, count)


def check_tokens(tokens: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Tokens as an int64 array [L]. Raises ValueError unless all are in 0..2**32-2."""
    try:
        array = np.asarray(tokens, dtype=np.int64)
    except OverflowError:
        array = np.array([-1])
    if array.ndim != 1:
        raise ValueError("tokens must be one flat sequence")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= TOKEN_MASK):
        raise ValueError(f"tokens must be in 0..{TOKEN_MASK - 1}")
    return array


def context_and_block(
    watermark: Watermark, tokens: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Contexts [N, H] and blocks [N, r] of the blocks that start at `starts` [N]."""
    width = watermark.context_width
    if starts.size == 0:
        return np.empty((0, width), np.int64), np.empty((0, watermark.block_size), np.int64)
    rows = windows(tokens, starts - width, width + watermark.block_size)
    return rows[:, :width], rows[:, width:]


def position_scores(watermark: Watermark, prf_key: bytes, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Standardised score z of the block that starts at token H + i, for every i: [L - H - r + 1].

    Without watermark the scores are independent and identically distributed whatever the text is:
    a (context, block) that occurs again is scored with fresh words (`Watermark.score`). The null of
    any statistic of them therefore depends on their number alone.
    """
    return watermark.standardize(BlockRows.at_every_position(watermark, tokens).scores(watermark, prf_key))


@dataclass(frozen=True, slots=True, eq=False)
class BlockRows:
    """Blocks of a text, to be scored under many keys.

    Attributes:
        starts: [N] first token of each.
        contexts, blocks: [N, H] and [N, r].
        occurrences: [N] how many earlier ones are equal; None: none is scored twice.
        row_keys: of the rows that are redrawn.
    """

    starts: NDArray[np.int64]
    contexts: NDArray[np.int64]
    blocks: NDArray[np.int64]
    occurrences: NDArray[np.int64] | None
    row_keys: RowKeys | None

    @classmethod
    def at_every_position(
        cls, watermark: Watermark, tokens: NDArray[np.int64], redrawn: Redrawn | None = None
    ) -> Self:
        starts = np.arange(watermark.context_width, tokens.size - watermark.block_size + 1)
        pause()
        contexts, blocks = context_and_block(watermark, tokens, starts)
        again = occurrence_numbers(np.concatenate([contexts, blocks], axis=1))
        return cls(starts, contexts, blocks, again, _row_keys(watermark, starts, redrawn))

    @classmethod
    def at_phase(
        cls, watermark: Watermark, tokens: NDArray[np.int64], phase: int, redrawn: Redrawn | None = None
    ) -> Self:
        """The rows that direct detection sums with block boundaries at `phase`."""
        starts = scored_positions(tokens, watermark.block_size, watermark.context_width, phase)
        parts = context_and_block(watermark, tokens, starts)
        return cls(starts, *parts, None, _row_keys(watermark, starts, redrawn))

    @property
    def count(self) -> int:
        return self.starts.size

    def scores_under_each(
        self, watermark: Watermark, prf_keys: Sequence[bytes], rows: int = STEPS
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        parts = self.contexts, self.blocks, self.occurrences
        return scores_under_each(watermark, prf_keys, *parts, rows=rows, row_keys=self.row_keys)

    def scores(self, watermark: Watermark, prf_key: bytes) -> NDArray[np.float64]:
        """`Watermark.score` of the blocks under one key [N]."""
        ((_, of_keys),) = self.scores_under_each(watermark, [prf_key])
        scores: NDArray[np.float64] = of_keys[0]
        return scores


def _row_keys(watermark: Watermark, starts: NDArray[np.int64], redrawn: Redrawn | None) -> RowKeys | None:
    return None if redrawn is None else RowKeys.of([(redrawn, starts - watermark.context_width)])


@dataclass(frozen=True, slots=True, eq=False)
class DirectEvidence:
    """What the direct detector found in one text under one key."""

    log10_p: float
    """p-value, corrected for the phases tried."""
    z: float
    tokens: int
    scored_blocks: int
    hypotheses: int
    phase: int
    """Offset of the block boundaries that gave this evidence."""
    starts: NDArray[np.int64]
    """First token of each scored block."""
    scores: NDArray[np.float64]
    """Standardised score of each scored block."""


def detect_direct(
    watermark: Watermark,
    prf_key: bytes,
    tokens: Sequence[int] | NDArray[np.int64],
    *,
    phase: int | Literal["any"] = 0,
) -> DirectEvidence:
    """Test a text for the watermark with block boundaries at `phase`, or at the best of all phases.

    Raises ValueError for a phase outside 0..r-1, a token outside 0..2**32-2 or a bad key.
    """
    tokens = check_tokens(tokens)
    if phase == "any":
        phases = range(watermark.block_size)
    elif 0 <= phase < watermark.block_size:
        phases = range(phase, phase + 1)
    else:
        raise ValueError(f"phase must be 0 to {watermark.block_size - 1} or 'any', not {phase!r}")
    found = []
    for offset in phases:
        rows = BlockRows.at_phase(watermark, tokens, offset)
        found.append(direct_evidence(watermark, prf_key, tokens, rows, phase=offset, phases=len(phases)))
    return min(found, key=lambda evidence: evidence.log10_p)


def direct_totals(watermark: Watermark, prf_keys: Sequence[bytes], rows: BlockRows) -> NDArray[np.float64]:
    totals = np.zeros(len(prf_keys))
    for keys, scores in rows.scores_under_each(watermark, prf_keys):
        pause()
        totals[keys] = scores.sum(axis=1)
    return totals


def direct_evidence(
    watermark: Watermark,
    prf_key: bytes,
    tokens: NDArray[np.int64],
    rows: BlockRows,
    *,
    phase: int,
    phases: int,
) -> DirectEvidence:
    """What a text's blocks at `phase`, one of `phases` that were tried, say under one key."""
    scores, blocks = rows.scores(watermark, prf_key), rows.count
    total = float(np.sum(scores))
    return DirectEvidence(
        log10_p=corrected(watermark.log10_p_value(total, blocks), phases),
        z=watermark.z_score(total, blocks),
        tokens=tokens.size,
        scored_blocks=blocks,
        hypotheses=phases,
        phase=phase,
        starts=rows.starts,
        scores=watermark.standardize(scores),
    )
