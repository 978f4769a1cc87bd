"""The core's detectors that score every position, aligned and localized, over many documents at once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.detectors import BatchDetector, Pool, Tokens, Tried, Way, batches
from ttmark.detect_service.pool_segments import PoolSegments
from ttmark.shared.watermark import Watermark, corrected
from ttmark.shared.watermark.detectors.aligned import AlignmentNull, aligned_null, check_beta
from ttmark.shared.watermark.detectors.alignment import aligned_score_of_each
from ttmark.shared.watermark.detectors.localized import Method
from ttmark.shared.watermark.detectors.positions import PositionRows
from ttmark.shared.watermark.redrawn import Redrawn

Scores = NDArray[np.float64]
Judge = Callable[[Watermark, Pool, Sequence[Tokens], PositionRows], list[Tried]]
"""Watermark, the keys of one version, documents, their rows -> what was found of each document."""

# Rows that are scored together: a hundred usual documents, so that the alignments of all of them advance
# in one step; 60 bytes each.
_ROWS = 65536
# Keys of a pool under which a batch is scored together, where the pool has so many.
_KEYS = 64


def aligned(beta: float, log10_limit: float = -2.0) -> BatchDetector:
    """`ttmark.shared.watermark.detect_aligned` of every document under every key.

    Args:
        log10_limit: the corrected p-value within which a key of a pool counts as found.

    Raises:
        ValueError: `beta` is no price.
    """
    check_beta(beta)
    return partial(_detect, partial(_aligned, beta, log10_limit))


def localized(method: Method, log10_e_limit: float) -> BatchDetector:
    """`ttmark.shared.watermark.detect_localized` of every document under every key.

    Args:
        log10_e_limit: of the corrected E-values of passages.
    """
    return partial(_detect, partial(_localized, method, log10_e_limit))


def _detect(
    judge: Judge,
    watermark: Watermark,
    versions: Sequence[Pool],
    documents: Sequence[Tokens],
    redrawn: Sequence[Redrawn | None] | None = None,
) -> list[list[Tried]]:
    tried: list[list[Tried]] = []
    together = min(_KEYS, max(map(len, versions), default=1))
    for batch in batches([tokens.size for tokens in documents], _ROWS // together):
        rows = PositionRows.of(watermark, documents[batch], redrawn and redrawn[batch])
        by_version = [judge(watermark, pool, documents[batch], rows) for pool in versions]
        tried += [[found[index] for found in by_version] for index in range(rows.ends.size)]
    return tried


def _aligned(
    beta: float,
    log10_limit: float,
    watermark: Watermark,
    pool: Pool,
    documents: Sequence[Tokens],
    rows: PositionRows,
) -> list[Tried]:
    sizes = np.diff(rows.ends, prepend=0)
    scored = np.flatnonzero(sizes)
    totals = np.zeros((len(pool), sizes.size))
    for keys, scores in rows.scores_under_each(watermark, pool, _ROWS):
        ends = rows.ends[scored] + scores.shape[1] * np.arange(len(scores))[:, None]
        of_each = aligned_score_of_each(scores.ravel(), ends.ravel(), watermark.block_size, beta)
        totals[keys, scored] = of_each.reshape(ends.shape)
    return [
        _best_alignment(
            watermark,
            tokens,
            aligned_null(watermark, pool[0], tokens, size, beta),
            totals[:, index],
            log10_limit,
        )
        for index, (tokens, size) in enumerate(zip(documents, sizes.tolist(), strict=True))
    ]


def _best_alignment(
    watermark: Watermark, tokens: Tokens, null: AlignmentNull, totals: Scores, log10_limit: float
) -> Tried:
    """The best of a pool's keys, from the scores of their alignments [keys]: p falls as a score grows."""
    count = totals.size
    order = np.argsort(-totals, kind="stable")
    evidence = null.evidence(watermark, tokens, float(totals[order[0]]))
    fired = []
    for key in order.tolist():
        log10_p = corrected(null.log10_p(float(totals[key])), count)
        if log10_p > log10_limit:
            break
        fired.append(log10_p)
    return Tried(
        replace(evidence, log10_p=corrected(evidence.log10_p, count), hypotheses=count),
        first_log10_p=null.log10_p(float(totals[0])),
        ways=(Way(-(-evidence.scored_blocks // watermark.block_size), count),),
        pool_key=int(order[0]),
        fired=tuple(fired),
    )


def _localized(
    method: Method,
    log10_e_limit: float,
    watermark: Watermark,
    pool: Pool,
    documents: Sequence[Tokens],
    rows: PositionRows,
) -> list[Tried]:
    starts = rows.ends - np.diff(rows.ends, prepend=0)
    found = [PoolSegments(watermark, method, pool, tokens, log10_e_limit) for tokens in documents]
    for keys, scores in rows.scores_under_each(watermark, pool, _ROWS):
        for segments, start, end in zip(found, starts.tolist(), rows.ends.tolist(), strict=True):
            segments.look(keys.start, scores[:, start:end])
    return [segments.tried() for segments in found]
