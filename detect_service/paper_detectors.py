"""The paper's statistics, each as a mode of its own: direct, aligned and localized detection."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.detectors import Detector, Tokens, Tried
from ttmark.shared.keys.unlocked import UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection import Phase
from ttmark.shared.watermark import DirectEvidence, LocalizedEvidence, corrected, scored_positions
from ttmark.shared.watermark.detectors.aligned import aligned_evidence, aligned_null, check_beta
from ttmark.shared.watermark.detectors.alignment import aligned_score_of_each
from ttmark.shared.watermark.detectors.localized import Method, localized_evidence, segment_null
from ttmark.shared.watermark.detectors.positions import PositionRows, context_and_block
from ttmark.shared.watermark.detectors.segments import disjoint
from ttmark.shared.watermark.pauses import pause
from ttmark.shared.watermark.pool_scores import scores_under_each
from ttmark.shared.watermark.redrawn import Redrawn, RowKeys

# Scores of positions that are made at once.
_ROWS = 65536


def direct(phase: Phase, log10_limit: float = -2.0) -> Detector:
    """`ttmark.shared.watermark.detect_direct` under every key of a pool.

    Args:
        log10_limit: the corrected p-value within which a key of a pool counts as found.
    """

    def look(
        key: UnlockedKey, version: UnlockedVersion, tokens: Tokens, redrawn: Redrawn | None = None
    ) -> Tried:
        watermark, pool = key.profile.watermark(), version.prf_keys
        phases = range(watermark.block_size if phase == "any" else 1)
        tries = len(pool) * len(phases)
        smallest: dict[int, tuple[float, int]] = {}
        first, placed = 0.0, []
        for offset in phases:
            starts = scored_positions(tokens, watermark.block_size, watermark.context_width, offset)
            rows = context_and_block(watermark, tokens, starts)
            drawn = RowKeys.of([(redrawn, starts - watermark.context_width)])
            placed.append((starts, rows, drawn))
            totals = np.zeros(len(pool))
            for keys, scores in scores_under_each(watermark, pool, *rows, row_keys=drawn):
                pause()
                totals[keys] = scores.sum(axis=1)
            p_value = partial(watermark.log10_p_value, blocks=starts.size)
            if offset == 0:
                first = p_value(float(totals[0]))
            for own, number in _falling(totals, p_value, tries, log10_limit):
                smallest[number] = min((own, offset), smallest.get(number, (math.inf, 0)))
        best = min(smallest, key=lambda number: (smallest[number], number))
        log10_p, offset = smallest[best]
        starts, rows, drawn = placed[offset]
        (scores,) = (one[0] for _, one in scores_under_each(watermark, [pool[best]], *rows, row_keys=drawn))
        evidence = DirectEvidence.of_scores(watermark, tokens, starts, scores, phase=offset, phases=1)
        return Tried(
            replace(evidence, log10_p=log10_p, hypotheses=tries),
            first_log10_p=first,
            blocks=max(starts.size for starts, _, _ in placed),
            correction=tries,
            pool_key=best,
            fired=tuple(sorted((own, number) for number, (own, _) in smallest.items() if own <= log10_limit)),
        )

    return look


def aligned(beta: float, log10_limit: float = -2.0) -> Detector:
    """`ttmark.shared.watermark.detect_aligned` under every key of a pool.

    Args:
        log10_limit: the corrected p-value within which a key of a pool counts as found.

    Raises:
        ValueError: `beta` is no price.
    """
    check_beta(beta)

    def look(
        key: UnlockedKey, version: UnlockedVersion, tokens: Tokens, redrawn: Redrawn | None = None
    ) -> Tried:
        watermark, pool = key.profile.watermark(), version.prf_keys
        rows = PositionRows.of(watermark, tokens, redrawn)
        totals = np.zeros(len(pool))
        if rows.positions:
            for keys, scores in rows.scores_under_each(watermark, pool, _ROWS):
                totals[keys] = aligned_score_of_each(scores, watermark.block_size, beta)
        null = aligned_null(watermark, pool[0], tokens, rows.positions, beta)
        found = _falling(totals, null, len(pool), log10_limit)
        log10_p, best = found[0]
        evidence = aligned_evidence(watermark, tokens, rows.positions, float(totals[best]), log10_p)
        return Tried(
            replace(evidence, hypotheses=len(pool)),
            first_log10_p=null(float(totals[0])),
            blocks=-(-rows.positions // watermark.block_size),
            correction=len(pool),
            pool_key=best,
            fired=tuple(one for one in found if one[0] <= log10_limit),
        )

    return look


def localized(method: Method, log10_e_limit: float = -2.0) -> Detector:
    """`ttmark.shared.watermark.detect_localized` under every key of a pool.

    Args:
        log10_e_limit: of the corrected E-values of passages.
    """

    def look(
        key: UnlockedKey, version: UnlockedVersion, tokens: Tokens, redrawn: Redrawn | None = None
    ) -> Tried:
        watermark, pool = key.profile.watermark(), version.prf_keys
        step, width = math.log10(len(pool)), watermark.context_width
        rows = PositionRows.of(watermark, tokens, redrawn)
        null = segment_null(watermark, method, pool[0], tokens, rows.positions)
        found: list[LocalizedEvidence] = []
        for _, scores in rows.scores_under_each(watermark, pool, _ROWS):
            for own in scores:
                pause()
                found.append(localized_evidence(watermark, tokens, own, method, log10_e_limit - step, null))
        best = min(range(len(found)), key=lambda number: found[number].log10_p)
        by_e_value = sorted(
            # Passages may share the context that the end of one reaches into, as under one key they may.
            (
                replace(one, end=one.end - width, log10_e=one.log10_e + step, pool_key=number)
                for number, of_key in enumerate(found)
                for one in of_key.segments
            ),
            key=lambda one: one.log10_e,
        )
        return Tried(
            replace(
                found[best],
                log10_p=corrected(found[best].log10_p, len(pool)),
                hypotheses=len(pool),
                segments=tuple(replace(one, end=one.end + width) for one in disjoint(by_e_value)),
            ),
            first_log10_p=found[0].log10_p,
            blocks=-(-rows.positions // watermark.block_size),
            correction=len(pool),
            pool_key=best,
            fired=tuple(
                sorted((one.segments[0].log10_e + step, key) for key, one in enumerate(found) if one.segments)
            ),
        )

    return look


def _falling(
    totals: NDArray[np.float64], log10_p: Callable[[float], float], tries: int, log10_limit: float
) -> Sequence[tuple[float, int]]:
    """Corrected log10 p-values and keys, from sums of scores [keys]: the best, and those within the limit.

    p falls as a sum grows, so that few tails are needed.
    """
    found: list[tuple[float, int]] = []
    for number in np.argsort(-totals, kind="stable").tolist():
        own = corrected(log10_p(float(totals[number])), tries)
        if found and own > log10_limit:
            break
        found.append((own, number))
        if own > log10_limit:
            break
    return found
