"""Token ids and keys in, evidence out: pure, the same for the service, the command line and bulk runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from detect_service.detectors import BatchDetector, Evidence, Tokens
from shared.keys import UnlockedKey, UnlockedVersion
from shared.watermark import LocalizedEvidence, corrected

Attempt = tuple[Evidence, UnlockedKey, UnlockedVersion]


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
        null_log10_p: p-value under one hypothesis that was chosen without looking, the first one; uniform
            over texts without its watermark. None where the first attempt tries several phases at once.
    """

    key: UnlockedKey
    version: UnlockedVersion
    evidence: Evidence
    log10_p: float
    hypotheses: int
    segments: tuple[FoundSegment, ...] | None
    null_log10_p: float | None = None

    @property
    def z(self) -> float | None:
        """The detector's z; None for localized detection, which has none."""
        return None if isinstance(self.evidence, LocalizedEvidence) else self.evidence.z


def best_findings(
    token_ids: Callable[[UnlockedKey], Sequence[Tokens]],
    keys: Sequence[UnlockedKey],
    detector: BatchDetector,
) -> list[Finding] | None:
    """Tries every detectable version of every key on every document.

    Args:
        token_ids: the documents' tokens as the key's profile reads them.
        keys: keys to try.
        detector: a detector with its options bound.

    Returns:
        For each document the finding with the smallest p-value; None when no key has a detectable version.
    """
    attempts: list[list[Attempt]] = []  # [versions][documents]
    for key in keys:
        versions = key.detectable
        by_document = detector(
            key.profile.watermark(), [version.prf_key for version in versions], token_ids(key)
        )
        for index, version in enumerate(versions):
            attempts.append([(evidence[index], key, version) for evidence in by_document])
    return [_best(tried) for tried in zip(*attempts, strict=True)] if attempts else None


def _best(tried: Sequence[Attempt]) -> Finding:
    """What one document's attempts amount to, corrected for their number."""
    evidence, key, version = min(tried, key=lambda attempt: attempt[0].log10_p)
    first = tried[0][0]
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
        null_log10_p=first.log10_p if first.hypotheses == 1 else None,
    )


def _disjoint(found: Sequence[FoundSegment]) -> tuple[FoundSegment, ...]:
    """The segments in order; of overlapping ones, those with the smallest E-value."""
    kept: list[FoundSegment] = []
    for segment in sorted(found, key=lambda segment: segment.log10_e):
        if all(segment.end <= other.start or segment.start >= other.end for other in kept):
            kept.append(segment)
    return tuple(sorted(kept, key=lambda segment: segment.start))
