"""Direct, aligned and localized detection as one question, over many documents at once."""

import math
from collections.abc import Sequence
from dataclasses import replace

from ttmark.detect_service.detectors import (
    BatchDetector,
    CombinedEvidence,
    ModeName,
    Pool,
    Tokens,
    Tried,
    Way,
    one_mode,
)
from ttmark.detect_service.direct_detector import direct
from ttmark.detect_service.position_detectors import aligned, localized
from ttmark.shared.schemas.detection import DEFAULT_BETA, Phase
from ttmark.shared.watermark import LocalizedEvidence, Watermark
from ttmark.shared.watermark.detectors.combined import Shares
from ttmark.shared.watermark.detectors.segments import log10_expected
from ttmark.shared.watermark.redrawn import Redrawn


def combined(phase_of_each: Sequence[Phase], log10_limit: float) -> BatchDetector:
    """The three detectors over the same documents; `scan` and the default beta.

    Args:
        phase_of_each: of direct detection, for each document that the detector will be given.
        log10_limit: the corrected p-value or E-value within which a key or a passage counts as found.
    """
    directly = direct(phase_of_each, log10_limit, lambda phases: Shares.of(phases).factors())
    by_alignment = aligned(DEFAULT_BETA, log10_limit)
    by_passages = localized("scan", log10_limit)

    def detect_all(
        watermark: Watermark,
        versions: Sequence[Pool],
        documents: Sequence[Tokens],
        redrawn: Sequence[Redrawn | None] | None = None,
    ) -> list[list[Tried]]:
        shares = [Shares.of(watermark.block_size if phase == "any" else 1) for phase in phase_of_each]
        found = (
            detector(watermark, versions, documents, redrawn)
            for detector in (directly, by_alignment, by_passages)
        )
        return [
            [_combined(a, b, c, share, log10_limit) for a, b, c in zip(*of_document, strict=True)]
            for share, *of_document in zip(shares, *found, strict=True)
        ]

    return detect_all


def _combined(direct: Tried, aligned: Tried, localized: Tried, shares: Shares, log10_limit: float) -> Tried:
    """One document under one key version. Of equal p-values the first detector's counts."""
    passages = localized.evidence
    if not isinstance(passages, LocalizedEvidence):
        raise TypeError(f"no passages in {type(passages).__name__}")
    step = -math.log10(shares.localized)
    segments = (replace(one, log10_e=one.log10_e + step) for one in passages.segments)
    parts: tuple[tuple[ModeName, Tried, float, float], ...] = (
        ("direct", direct, direct.evidence.log10_p, shares.direct),
        ("aligned", aligned, aligned.evidence.log10_p, shares.aligned),
        # As an E-value: a document is found by its passages exactly where one of them is.
        ("localized", localized, log10_expected(passages.log10_p), shares.localized),
    )
    mode, best, _, _ = min(parts, key=lambda part: part[2] - math.log10(part[3]))
    fired = [
        tuple(one - math.log10(share) for one in tried.fired if one - math.log10(share) <= log10_limit)
        for _, tried, _, share in parts
    ]
    return Tried(
        CombinedEvidence(
            mode=mode,
            best=one_mode(best.evidence),
            log10_p=min(0.0, *(log10_p - math.log10(share) for _, _, log10_p, share in parts)),
            hypotheses=sum(tried.evidence.hypotheses for _, tried, _, _ in parts),
            segments=tuple(one for one in segments if one.log10_e <= log10_limit),
        ),
        first_log10_p=direct.first_log10_p,
        ways=tuple(
            Way(way.blocks, way.correction / share) for _, tried, _, share in parts for way in tried.ways
        ),
        pool_key=best.pool_key,
        # Each detector alone names keys at the rate; the one that tells the most of them apart counts.
        fired=max(fired, key=len),
    )
