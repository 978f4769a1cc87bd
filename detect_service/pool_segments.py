"""Passages of one document, looked for under the keys of a pool, some keys at a time."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.detectors import Pool, Tokens, Tried, Way
from ttmark.shared.watermark import LocalizedEvidence, Watermark, corrected
from ttmark.shared.watermark.detectors.localized import Method, localized_evidence, segment_null
from ttmark.shared.watermark.detectors.scan import best_scores
from ttmark.shared.watermark.detectors.segments import Segment, disjoint, log10_family
from ttmark.shared.watermark.detectors.waterseeker import best_window_scores

# Keys from which on a step of all of them in numpy costs less than a step of each in Python.
_TOGETHER = 24
# Bounds add the same numbers in another order.
_ROUNDING = 1e-6


class PoolSegments:
    """What the keys of one version say about one document.

    Of many keys those are looked at closely whose best passage could be reported, or be the best of all.
    """

    def __init__(
        self, watermark: Watermark, method: Method, pool: Pool, tokens: Tokens, log10_e_limit: float
    ) -> None:
        positions = max(0, tokens.size - watermark.context_width - watermark.block_size + 1)
        self._watermark = watermark
        self._method = method
        self._tokens = tokens
        self._count = len(pool)
        # E-values of one key, before they are corrected for the number of keys.
        self._limit = log10_e_limit - math.log10(self._count)
        self._null = segment_null(watermark, method, pool[0], tokens, positions)
        self._first_log10_p = 0.0
        self._best_key = 0
        self._best = LocalizedEvidence(0.0, tokens.size, positions, 1, self._null.source, ())
        self._segments: list[Segment] = []
        self._fired: list[float] = []

    def look(self, first: int, scores: NDArray[np.float64]) -> None:
        """Takes in the position scores [keys, n] under the pool's keys from number `first` on."""
        bounds = self._bounds(scores)
        for row in np.argsort(-bounds, kind="stable").tolist():
            if first + row == 0 or self._matters(float(bounds[row])):
                self._look(first + row, scores[row])

    def tried(self) -> Tried:
        """What came of it, once every key was looked at."""
        evidence, step = self._best, math.log10(self._count)
        # Passages may share the context that the end of one reaches into, as under one key they may.
        width = self._watermark.context_width
        peaks = (replace(segment, end=segment.end - width) for segment in self._segments)
        by_e_value = sorted(peaks, key=lambda peak: peak.log10_e)
        corrected_segments = (
            replace(peak, end=peak.end + width, log10_e=peak.log10_e + step) for peak in disjoint(by_e_value)
        )
        return Tried(
            replace(
                evidence,
                log10_p=corrected(evidence.log10_p, self._count),
                hypotheses=self._count,
                segments=tuple(corrected_segments),
            ),
            first_log10_p=self._first_log10_p,
            ways=(Way(-(-evidence.scored_blocks // self._watermark.block_size), self._count),),
            pool_key=self._best_key,
            fired=tuple(sorted(log10_e + step for log10_e in self._fired)),
        )

    def _bounds(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the best passage under each key scores at most [keys]."""
        if len(scores) < _TOGETHER or scores.shape[1] == 0:
            return np.full(len(scores), math.inf)
        size = self._watermark.block_size
        if self._method == "scan":
            return best_scores([scores.T], size, len(scores)) + _ROUNDING
        return best_window_scores(scores, size, self._watermark.log10_p_of_z_sum) + _ROUNDING

    def _matters(self, bound: float) -> bool:
        log10_e = self._null.log10_e(bound)
        return log10_e <= self._limit or log10_family(log10_e) < self._best.log10_p

    def _look(self, key: int, scores: NDArray[np.float64]) -> None:
        found = localized_evidence(
            self._watermark, self._tokens, scores, self._method, self._limit, self._null
        )
        if key == 0:
            self._first_log10_p = found.log10_p
        if found.log10_p < self._best.log10_p:
            self._best_key, self._best = key, found
        if found.segments:
            self._segments += [replace(segment, pool_key=key) for segment in found.segments]
            self._fired.append(found.segments[0].log10_e)
