"""The paper's statistics, each as a mode of its own: direct, aligned and localized detection."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.verdict import (
    Detector,
    DocumentFinding,
    Fired,
    FoundSegment,
    KeyVersion,
    Reach,
    Tokens,
)
from ttmark.shared.schemas.detection.detect import Phase
from ttmark.shared.watermark.detectors.alignment import (
    aligned_evidence,
    aligned_null,
    aligned_totals,
    check_beta,
)
from ttmark.shared.watermark.detectors.block_scores import BlockRows, direct_evidence, direct_totals
from ttmark.shared.watermark.detectors.localized import Method, localized_under_each, segment_null
from ttmark.shared.watermark.detectors.segments import disjoint
from ttmark.shared.watermark.null_replacement import Redrawn
from ttmark.shared.watermark.nulls import corrected


def direct(phase: Phase, log10_limit: float = -2.0) -> Detector:
    """`ttmark.shared.watermark.detect_direct` under every key of a pool, each held to `log10_limit`."""

    def look(
        versions: Sequence[KeyVersion], tokens: Tokens, redrawn: Redrawn | None = None
    ) -> list[DocumentFinding]:
        watermark = versions[0][0].profile.watermark()
        offsets = range(watermark.block_size if phase == "any" else 1)
        phases = [BlockRows.at_phase(watermark, tokens, offset, redrawn) for offset in offsets]
        findings = []
        for made_with in versions:
            pool = made_with[1].prf_keys
            tries, null_log10_p = len(pool) * len(phases), 0.0
            found: list[tuple[float, int, int]] = []  # p-values, phases, and keys
            for offset, rows in enumerate(phases):
                totals = direct_totals(watermark, pool, rows)
                p_value = partial(watermark.log10_p_value, blocks=rows.count)
                if offset == 0:
                    null_log10_p = p_value(float(totals[0]))
                near = _falling(totals, p_value, tries, log10_limit)
                found += [(own, offset, number) for own, number in near]
            found.sort()
            log10_p, offset, best = found[0]
            smallest = {number: own for own, _, number in reversed(found)}
            within = ((own, number) for number, own in smallest.items() if own <= log10_limit)
            evidence = direct_evidence(watermark, pool[best], tokens, phases[offset], phase=offset, phases=1)
            findings.append(
                DocumentFinding(
                    *made_with,
                    pool_key=best,
                    fired=_fired(made_with, within),
                    evidence=replace(evidence, log10_p=log10_p, hypotheses=tries),
                    log10_p=log10_p,
                    hypotheses=tries,
                    reach=(Reach(watermark, max(one.count for one in phases), tries),),
                    null_log10_p=null_log10_p,
                )
            )
        return findings

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
        versions: Sequence[KeyVersion], tokens: Tokens, redrawn: Redrawn | None = None
    ) -> list[DocumentFinding]:
        watermark = versions[0][0].profile.watermark()
        rows = BlockRows.at_every_position(watermark, tokens, redrawn)
        findings = []
        for made_with in versions:
            pool = made_with[1].prf_keys
            totals = aligned_totals(watermark, pool, rows, beta)
            null = aligned_null(watermark, pool[0], tokens, rows.count, beta)
            found = _falling(totals, null, len(pool), log10_limit)
            log10_p, best = found[0]
            evidence = aligned_evidence(watermark, tokens, rows.count, float(totals[best]), log10_p)
            findings.append(
                DocumentFinding(
                    *made_with,
                    pool_key=best,
                    fired=_fired(made_with, (one for one in found if one[0] <= log10_limit)),
                    evidence=replace(evidence, hypotheses=len(pool)),
                    log10_p=log10_p,
                    hypotheses=len(pool),
                    reach=(Reach(watermark, -(-rows.count // watermark.block_size), len(pool)),),
                    null_log10_p=null(float(totals[0])),
                )
            )
        return findings

    return look


def localized(method: Method, log10_e_limit: float = -2.0) -> Detector:
    """`ttmark.shared.watermark.detect_localized` under every key of a pool; E-values held to the limit."""

    def look(
        versions: Sequence[KeyVersion], tokens: Tokens, redrawn: Redrawn | None = None
    ) -> list[DocumentFinding]:
        watermark = versions[0][0].profile.watermark()
        rows = BlockRows.at_every_position(watermark, tokens, redrawn)
        width, findings = watermark.context_width, []
        for made_with in versions:
            pool = made_with[1].prf_keys
            step = math.log10(len(pool))
            null = segment_null(watermark, method, pool[0], tokens, rows.count)
            found = [*localized_under_each(watermark, pool, tokens, rows, method, log10_e_limit - step, null)]
            best = min(range(len(found)), key=[one.log10_p for one in found].__getitem__)
            log10_p = corrected(found[best].log10_p, len(pool))
            # Passages may share the context that the end of one reaches into, as under one key they may.
            passages = [
                FoundSegment(one.start, one.end - width, one.log10_e + step, *made_with, number)
                for number, of_key in enumerate(found)
                for one in of_key.segments
            ]
            passages.sort(key=lambda one: one.log10_e)
            each = enumerate(found)
            strongest = [(one.segments[0].log10_e + step, number) for number, one in each if one.segments]
            findings.append(
                DocumentFinding(
                    *made_with,
                    pool_key=best,
                    fired=_fired(made_with, strongest),
                    evidence=replace(found[best], log10_p=log10_p, hypotheses=len(pool)),
                    log10_p=log10_p,
                    hypotheses=len(pool),
                    reach=(Reach(watermark, -(-rows.count // watermark.block_size), len(pool)),),
                    null_log10_p=found[0].log10_p,
                    segments=tuple(replace(one, end=one.end + width) for one in disjoint(passages)),
                )
            )
        return findings

    return look


def _fired(made_with: KeyVersion, found: Iterable[tuple[float, int]]) -> tuple[Fired, ...]:
    """Of corrected p-values or E-values, and numbers of keys."""
    return tuple(Fired(own, *made_with, number) for own, number in sorted(found))


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
