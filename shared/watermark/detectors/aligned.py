"""Aligned detection: finds the watermark again after edits (paper, Algorithm 2)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.alignment import aligned_score, aligned_scores
from ttmark.shared.watermark.detectors.decoys import DECOYS, decoy_log10_p, decoy_scores
from ttmark.shared.watermark.detectors.positions import check_tokens, position_scores
from ttmark.shared.watermark.watermark import Watermark

BETA = 5.0


@dataclass(frozen=True, slots=True)
class AlignedEvidence:
    """What the aligned detector found in one text under one key."""

    log10_p: float
    z: float
    """z_emp, the paper's Eq. (8)."""
    tokens: int
    scored_blocks: int
    """Positions that were scored; blocks may start at each of them."""
    hypotheses: int


def detect_aligned(
    watermark: Watermark,
    prf_key: bytes,
    tokens: Sequence[int] | NDArray[np.int64],
    *,
    beta: float = BETA,
) -> AlignedEvidence:
    """Test a text whose block boundaries may have moved; `beta` is the price of a skipped token.

    The p-value is read from the null table of the watermark where that covers beta and length, else
    it is that of 1,000 decoys and not below 1/1001. Raises ValueError for a negative beta, a bad token
    or a bad key.
    """
    check_beta(beta)
    tokens = check_tokens(tokens)
    scores = position_scores(watermark, prf_key, tokens)
    score = aligned_score(scores, watermark.block_size, beta) if scores.size else 0.0
    null = aligned_null(watermark, prf_key, tokens, scores.size, beta)
    return aligned_evidence(watermark, tokens, scores.size, score, null(score))


def check_beta(beta: float) -> None:
    """Raises ValueError unless `beta` is a price."""
    if not 0.0 <= beta < math.inf:
        raise ValueError(f"beta must be a number of at least 0, not {beta}")


def aligned_evidence(
    watermark: Watermark, tokens: NDArray[np.int64], positions: int, score: float, log10_p: float
) -> AlignedEvidence:
    """What `score`, the `aligned_score` of so many positions of a text under one key, amounts to."""
    z = score / math.sqrt(tokens.size // watermark.block_size) if positions else 0.0
    return AlignedEvidence(log10_p, z, tokens.size, positions, 1)


def aligned_null(
    watermark: Watermark, prf_key: bytes, tokens: NDArray[np.int64], positions: int, beta: float
) -> Callable[[float], float]:
    """log10 p of the score of an alignment of so many positions, whatever the key is.

    From the null table of the watermark where that covers beta and length, else from decoys. `prf_key`
    chooses the decoys; those of one key serve for every key.
    """
    if positions == 0:
        return lambda _: 0.0
    if not needs_decoys(watermark, beta, positions):
        return lambda score: _from_table(watermark, beta, positions, score) or 0.0
    chunks = decoy_scores(watermark, prf_key, tokens, positions)
    decoys = aligned_scores(chunks, watermark.block_size, beta, DECOYS)
    return lambda score: decoy_log10_p(score, decoys)


def needs_decoys(watermark: Watermark, beta: float, positions: int) -> bool:
    """Whether a score over so many positions is held against decoys, for want of a null table."""
    return positions > 0 and _from_table(watermark, beta, positions, 0.0) is None


def _from_table(watermark: Watermark, beta: float, positions: int, score: float) -> float | None:
    table = watermark.null_table()
    if table is None or table.aligned.beta != beta:
        return None
    tokens = positions + watermark.block_size - 1
    return table.aligned.log10_p(watermark.block_size, tokens, score)
