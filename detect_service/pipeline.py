"""Token ids and keys in, evidence out: pure, the same for the service, the command line and bulk runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.keys import UnlockedKey, UnlockedVersion
from shared.watermark import AlignedEvidence, DirectEvidence, LocalizedEvidence, Watermark, corrected

Tokens = NDArray[np.int64]
Evidence = DirectEvidence | AlignedEvidence | LocalizedEvidence
Detector = Callable[[Watermark, bytes, Tokens], Evidence]


@dataclass(frozen=True, slots=True)
class FoundSegment:
    """A watermarked span of tokens [start, end) and the key version that made it.

    Attributes:
        log10_e: corrected for all versions tried.
    """

    start: int
    end: int
    log10_e: float
    key: UnlockedKey
    version: UnlockedVersion


@dataclass(frozen=True, slots=True)
class Finding:
    """The best evidence over all keys and versions that were tried on one document.

    Attributes:
        key: the key whose version gave the evidence.
        version: that version.
        evidence: the detector's result under it; its own p-value counts its own hypotheses only.
        log10_p: p-value of the document, corrected (Bonferroni) for every hypothesis tried.
        hypotheses: versions x phases tried on this document.
        segments: in order and disjoint; None unless the detector looks for segments.
    """

    key: UnlockedKey
    version: UnlockedVersion
    evidence: Evidence
    log10_p: float
    hypotheses: int
    segments: tuple[FoundSegment, ...] | None

    @property
    def z(self) -> float | None:
        """The detector's z; None for localized detection, which has none."""
        return None if isinstance(self.evidence, LocalizedEvidence) else self.evidence.z


def best_finding(
    token_ids: Callable[[UnlockedKey], Tokens], keys: Sequence[UnlockedKey], detector: Detector
) -> Finding | None:
    """Tries every detectable version of every key.

    Args:
        token_ids: the document's tokens as the key's profile reads it.
        keys: keys to try.
        detector: one of the core's detectors with its options bound.

    Returns:
        The finding with the smallest p-value, or None when no key has a detectable version.
    """
    tried = [
        (detector(key.profile.watermark(), version.prf_key, token_ids(key)), key, version)
        for key in keys
        for version in key.detectable
    ]
    if not tried:
        return None
    evidence, key, version = min(tried, key=lambda attempt: attempt[0].log10_p)
    segments = None
    if isinstance(evidence, LocalizedEvidence):
        segments = _disjoint(
            [
                FoundSegment(found.start, found.end, found.log10_e + math.log10(len(tried)), key, version)
                for attempt, key, version in tried
                if isinstance(attempt, LocalizedEvidence)
                for found in attempt.segments
            ]
        )
    return Finding(
        key=key,
        version=version,
        evidence=evidence,
        log10_p=corrected(evidence.log10_p, len(tried)),
        hypotheses=sum(attempt.hypotheses for attempt, _, _ in tried),
        segments=segments,
    )


def _disjoint(found: Sequence[FoundSegment]) -> tuple[FoundSegment, ...]:
    """The segments in order; of overlapping ones, those with the smallest E-value."""
    kept: list[FoundSegment] = []
    for segment in sorted(found, key=lambda segment: segment.log10_e):
        if all(segment.end <= other.start or segment.start >= other.end for other in kept):
            kept.append(segment)
    return tuple(sorted(kept, key=lambda segment: segment.start))
