"""Direct detection: blocks at fixed boundaries, exact p-value (paper, Eq. 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.positions import check_tokens, context_and_block
from ttmark.shared.watermark.nulls import corrected
from ttmark.shared.watermark.prf import key_lanes, scored_positions
from ttmark.shared.watermark.watermark import Watermark


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

    @classmethod
    def of_scores(
        cls,
        watermark: Watermark,
        tokens: NDArray[np.int64],
        starts: NDArray[np.int64],
        scores: NDArray[np.float64],
        *,
        phase: int,
        phases: int,
    ) -> Self:
        """What the scores [blocks] of the blocks at `starts` say, as one of `phases` that were tried."""
        total = float(np.sum(scores))
        return cls(
            log10_p=corrected(watermark.log10_p_value(total, starts.size), phases),
            z=watermark.z_score(total, starts.size),
            tokens=tokens.size,
            scored_blocks=starts.size,
            hypotheses=phases,
            phase=phase,
            starts=starts,
            scores=watermark.standardize(scores),
        )


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
    lanes = key_lanes(prf_key)
    found = [_detect_at(watermark, lanes, tokens, offset, len(phases)) for offset in phases]
    return min(found, key=lambda evidence: evidence.log10_p)


def _detect_at(
    watermark: Watermark, lanes: NDArray[np.int64], tokens: NDArray[np.int64], phase: int, phases: int
) -> DirectEvidence:
    starts = scored_positions(tokens, watermark.block_size, watermark.context_width, phase)
    scores = watermark.score(lanes, *context_and_block(watermark, tokens, starts))
    return DirectEvidence.of_scores(watermark, tokens, starts, scores, phase=phase, phases=phases)
