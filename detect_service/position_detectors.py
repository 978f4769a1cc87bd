"""The core's detectors that score every position, aligned and localized, over many documents at once."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.detectors import BatchDetector, Tokens, Tried, batches
from ttmark.shared.watermark import AlignedEvidence, LocalizedEvidence, Watermark
from ttmark.shared.watermark.detectors.aligned import aligned_evidence, check_beta
from ttmark.shared.watermark.detectors.alignment import aligned_score_of_each
from ttmark.shared.watermark.detectors.localized import Method, localized_evidence
from ttmark.shared.watermark.detectors.positions import PositionRows

Scores = NDArray[np.float64]
Found = AlignedEvidence | LocalizedEvidence
Judge = Callable[[Watermark, bytes, Sequence[Tokens], Scores, NDArray[np.int64]], Sequence[Found]]
"""Watermark, PRF key, documents, their scores one after the other [N], their ends -> evidence."""

# Rows that are scored together: a hundred usual documents, so that the alignments of all of them advance
# in one step; 60 bytes each.
_ROWS = 65536


def aligned(beta: float) -> BatchDetector:
    """`ttmark.shared.watermark.detect_aligned` of every document under every key.

    Raises:
        ValueError: `beta` is no price.
    """
    check_beta(beta)
    return partial(_detect, partial(_aligned, beta))


def localized(method: Method, log10_e_limit: float) -> BatchDetector:
    """`ttmark.shared.watermark.detect_localized` of every document under every key."""
    return partial(_detect, partial(_localized, method, log10_e_limit))


def _detect(
    judge: Judge, watermark: Watermark, prf_keys: Sequence[bytes], documents: Sequence[Tokens]
) -> list[list[Tried]]:
    tried: list[list[Tried]] = []
    for batch in batches([tokens.size for tokens in documents], _ROWS):
        rows = PositionRows.of(watermark, documents[batch])
        by_key = [
            judge(watermark, prf_key, documents[batch], rows.scores(watermark, prf_key), rows.ends)
            for prf_key in prf_keys
        ]
        tried += [
            [_alone(of_key[index], watermark.block_size) for of_key in by_key]
            for index in range(rows.ends.size)
        ]
    return tried


def _alone(evidence: Found, block_size: int) -> Tried:
    """One hypothesis, whose alignment chooses among positions that overlap."""
    return Tried(evidence, evidence.log10_p, -(-evidence.scored_blocks // block_size))


def _aligned(
    beta: float,
    watermark: Watermark,
    prf_key: bytes,
    documents: Sequence[Tokens],
    scores: Scores,
    ends: NDArray[np.int64],
) -> list[AlignedEvidence]:
    sizes = np.diff(ends, prepend=0)
    totals = np.zeros(ends.size)
    scored = np.flatnonzero(sizes)
    totals[scored] = aligned_score_of_each(scores, ends[scored], watermark.block_size, beta)
    return [
        aligned_evidence(watermark, prf_key, tokens, size, total, beta)
        for tokens, size, total in zip(documents, sizes.tolist(), totals.tolist(), strict=True)
    ]


def _localized(
    method: Method,
    log10_e_limit: float,
    watermark: Watermark,
    prf_key: bytes,
    documents: Sequence[Tokens],
    scores: Scores,
    ends: NDArray[np.int64],
) -> list[LocalizedEvidence]:
    return [
        localized_evidence(watermark, prf_key, tokens, of_text, method, log10_e_limit)
        for tokens, of_text in zip(documents, np.split(scores, ends[:-1]), strict=True)
    ]
