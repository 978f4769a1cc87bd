"""Localized detection: which spans of a document carry the watermark."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.alignment import DECOYS, decoy_log10_p, decoy_scores
from ttmark.shared.watermark.detectors.block_scores import POSITION_SCORES, BlockRows, check_tokens
from ttmark.shared.watermark.detectors.scan import best_scores, scan_parameters, scan_peaks
from ttmark.shared.watermark.detectors.segments import (
    LocalizedSegment,
    Peak,
    disjoint,
    log10_expected,
    log10_family,
)
from ttmark.shared.watermark.detectors.waterseeker import (
    best_window_scores,
    waterseeker_parameters,
    waterseeker_peaks,
)
from ttmark.shared.watermark.interruption import pause
from ttmark.shared.watermark.schemes.watermark import Watermark

Method = Literal["scan", "waterseeker"]
METHODS: tuple[Method, ...] = get_args(Method)
ExpectedSegments = Callable[[float], float]
"""log10 of the E-value of a segment score in one document."""


@dataclass(frozen=True, slots=True)
class LocalizedEvidence:
    """What a localized detector found in one document under one key."""

    log10_p: float
    """Of the whole document: the chance of any segment as good as the best one."""
    tokens: int
    scored_blocks: int
    """Positions that were scored; blocks may start at each of them."""
    hypotheses: int
    segments: tuple[LocalizedSegment, ...]
    """Disjoint, best first: those with an E-value within the limit."""


def detect_localized(
    watermark: Watermark,
    prf_key: bytes,
    tokens: Sequence[int] | NDArray[np.int64],
    *,
    method: Method = "scan",
    log10_e_limit: float = -2.0,
) -> LocalizedEvidence:
    """Find watermarked spans in a document; report those with an E-value of at most 10**log10_e_limit.

    E-values are read from the null table of the watermark, else they come from 1,000 decoys and are
    not below 1/1001. Raises ValueError for an unknown method, a bad token or a bad key.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    tokens = check_tokens(tokens)
    rows = BlockRows.at_every_position(watermark, tokens)
    expected = segment_null(watermark, method, prf_key, tokens, rows.count)
    (found,) = localized_under_each(watermark, [prf_key], tokens, rows, method, log10_e_limit, expected)
    return found


def localized_under_each(
    watermark: Watermark,
    prf_keys: Sequence[bytes],
    tokens: NDArray[np.int64],
    rows: BlockRows,
    method: Method,
    log10_e_limit: float,
    expected: ExpectedSegments,
) -> Iterator[LocalizedEvidence]:
    """What every position of a text says under each key; `expected` is its `segment_null`."""
    for _, scores in rows.scores_under_each(watermark, prf_keys, POSITION_SCORES):
        for own in watermark.standardize(scores):
            pause()
            yield _evidence(watermark, tokens, own, method, log10_e_limit, expected)


def segment_null(
    watermark: Watermark, method: Method, prf_key: bytes, tokens: NDArray[np.int64], positions: int
) -> ExpectedSegments:
    """What segments of a text reach without a watermark: by its null table, else by decoys.

    `prf_key` chooses the decoys; those of one key serve for every key.
    """
    if positions == 0:
        return lambda _: math.inf
    expected = _from_table(watermark, method, positions)
    return expected or _from_decoys(watermark, method, prf_key, tokens, positions)


def _evidence(
    watermark: Watermark,
    tokens: NDArray[np.int64],
    scores: NDArray[np.float64],
    method: Method,
    log10_e_limit: float,
    expected: ExpectedSegments,
) -> LocalizedEvidence:
    """What the text's `position_scores` under one key amount to."""
    if scores.size == 0:
        return LocalizedEvidence(0.0, tokens.size, 0, 1, ())
    peaks = find_peaks(watermark, method, scores, lambda score: expected(score) <= log10_e_limit)
    segments = tuple(
        # The context of the first block is part of what the generator wrote.
        LocalizedSegment(peak.start, peak.end + watermark.context_width, peak.score, expected(peak.score))
        for peak in disjoint(peak for peak in peaks if peak.score > 0.0)
        if expected(peak.score) <= log10_e_limit
    )
    log10_p = log10_family(expected(peaks[0].score)) if peaks else 0.0
    return LocalizedEvidence(log10_p, tokens.size, scores.size, 1, segments)


def find_peaks(
    watermark: Watermark, method: Method, scores: NDArray[np.float64], is_reported: Callable[[float], bool]
) -> list[Peak]:
    """The candidate segments of `method`, best first; tokens counted from the first block's."""
    if method == "scan":
        return scan_peaks(scores, watermark.block_size, is_reported)
    return waterseeker_peaks(scores, watermark.block_size, watermark.log10_p_of_z_sum)


def method_parameters(method: Method, block_size: int) -> dict[str, float]:
    """The settings of `method` that its null tables are made for."""
    return scan_parameters(block_size) if method == "scan" else waterseeker_parameters()


def needs_decoys(watermark: Watermark, method: Method, positions: int) -> bool:
    """Whether the peaks of so many positions are held against decoys, for want of a null table."""
    return positions > 0 and _from_table(watermark, method, positions) is None


def _from_table(watermark: Watermark, method: Method, positions: int) -> ExpectedSegments | None:
    table = watermark.null_table()
    if table is None:
        return None
    null = table.scan if method == "scan" else table.waterseeker
    if null.parameters != method_parameters(method, watermark.block_size):
        return None
    tokens = positions + watermark.block_size - 1
    return lambda score: null.log10_e(tokens, score)


def _from_decoys(
    watermark: Watermark, method: Method, prf_key: bytes, tokens: NDArray[np.int64], positions: int
) -> ExpectedSegments:
    chunks = decoy_scores(watermark, prf_key, tokens, positions)
    if method == "scan":
        decoys = best_scores(chunks, watermark.block_size, DECOYS)
    else:
        columns = np.empty((DECOYS, positions))
        filled = 0
        for chunk in chunks:
            columns[:, filled : filled + len(chunk)] = chunk.T
            filled += len(chunk)
        decoys = best_window_scores(columns, watermark.block_size, watermark.log10_p_of_z_sum)
    return lambda score: log10_expected(decoy_log10_p(score, decoys))
