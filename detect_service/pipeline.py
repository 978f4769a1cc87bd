"""Token ids and keys in, evidence out: pure, the same for the service, the command line and bulk runs."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ttmark.detect_service.detectors import BatchDetector, CombinedEvidence, Evidence, Tokens, Tried, one_mode
from ttmark.shared.keys.unlocked import UnlockedKey, UnlockedVersion
from ttmark.shared.watermark import LocalizedEvidence, Watermark, corrected
from ttmark.shared.watermark.detectors.segments import disjoint
from ttmark.shared.watermark.redrawn import Redrawn

Attempt = tuple[Tried, UnlockedKey, UnlockedVersion]


@dataclass(frozen=True, slots=True)
class FoundSegment:
    """A watermarked span of tokens [start, end) and the key version that made it.

    Attributes:
        log10_e: corrected for all versions tried.
        pool_key: number of the key in the version's pool.
    """

    start: int
    end: int
    log10_e: float
    key: UnlockedKey
    version: UnlockedVersion
    pool_key: int


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the best possible score of one kind of key could have led.

    Attributes:
        watermark: as the profile describes it.
        blocks: the most blocks that count at once.
        correction: the number by which a p-value under such a key is multiplied.
    """

    watermark: Watermark
    blocks: int
    correction: float

    def among(self, readings: int) -> "Reach":
        """The same where the document is read in so many ways."""
        return replace(self, correction=self.correction * readings)


@dataclass(frozen=True, slots=True)
class Finding:
    """The best evidence over all keys and versions that were tried on one document.

    Attributes:
        key: the key whose version gave the evidence.
        version: that version.
        pool_key: number of the key in the version's pool.
        fired: corrected log10 p-values, of localized detection E-values, of the version's keys that are
            within the rate asked for, each by itself: one in a text from one completion, several in one that
            was put together from pieces.
        evidence: the detector's result under it; its own p-value counts its own hypotheses only.
        log10_p: p-value of the document, corrected (Bonferroni) for every hypothesis tried.
        hypotheses: versions x keys of their pools x phases tried on this document.
        segments: in order and disjoint; None unless the detector looks for segments.
        reach: one for each profile and detector that was tried.
        null_log10_p: p-value under one hypothesis that was chosen without looking, the first phase of the
            first version; uniform over texts without its watermark.
    """

    key: UnlockedKey
    version: UnlockedVersion
    pool_key: int
    fired: tuple[float, ...]
    evidence: Evidence
    log10_p: float
    hypotheses: int
    segments: tuple[FoundSegment, ...] | None
    reach: tuple[Reach, ...]
    null_log10_p: float

    @property
    def z(self) -> float | None:
        """The detector's z; None for localized detection, which has none."""
        evidence = one_mode(self.evidence)
        return None if isinstance(evidence, LocalizedEvidence) else evidence.z


def best_findings(
    token_ids: Callable[[UnlockedKey], Sequence[Tokens]],
    keys: Sequence[UnlockedKey],
    detector: BatchDetector,
    others: int = 0,
    redrawn: Callable[[UnlockedKey], Sequence[Redrawn | None]] | None = None,
) -> list[Finding] | None:
    """Tries every detectable version of every key on every document.

    Args:
        token_ids: the documents' tokens as the key's profile reads them.
        keys: keys to try.
        detector: a detector with its options bound.
        others: versions of foreign keys that are tried on each document as well.
        redrawn: the documents' rows whose scores are drawn, as the key's profile reads them.

    Returns:
        For each document the finding with the smallest p-value; None when no key has a detectable version.
    """
    attempts: list[list[Attempt]] = []  # [versions][documents]
    for key in keys:
        versions = key.detectable
        pools = [version.prf_keys for version in versions]
        drawn = redrawn and redrawn(key)
        by_document = detector(key.profile.watermark(), pools, token_ids(key), drawn)
        for index, version in enumerate(versions):
            attempts.append([(tried[index], key, version) for tried in by_document])
    return [_best(tried, others) for tried in zip(*attempts, strict=True)] if attempts else None


def _best(tried: Sequence[Attempt], others: int) -> Finding:
    """What one document's attempts amount to, corrected for their number and that of `others`."""
    versions = len(tried) + others
    best, key, version = min(tried, key=lambda attempt: attempt[0].evidence.log10_p)
    evidence = best.evidence
    segments = None
    if isinstance(evidence, LocalizedEvidence | CombinedEvidence):
        found = [
            FoundSegment(one.start, one.end, one.log10_e + math.log10(versions), key, version, one.pool_key)
            for attempt, key, version in tried
            if isinstance(attempt.evidence, LocalizedEvidence | CombinedEvidence)
            for one in attempt.evidence.segments
        ]
        by_e_value = sorted(found, key=lambda segment: segment.log10_e)
        kept = _apart(by_e_value) if isinstance(evidence, CombinedEvidence) else disjoint(by_e_value)
        segments = tuple(sorted(kept, key=lambda segment: segment.start))
    return Finding(
        key=key,
        version=version,
        pool_key=best.pool_key,
        fired=tuple(log10_p + math.log10(versions) for log10_p in best.fired),
        evidence=evidence,
        log10_p=corrected(evidence.log10_p, versions),
        hypotheses=sum(attempt.evidence.hypotheses for attempt, _, _ in tried),
        segments=segments,
        reach=tuple(_reach(tried, versions)),
        null_log10_p=tried[0][0].first_log10_p,
    )


def _apart(found: Sequence[FoundSegment]) -> Iterator[FoundSegment]:
    """The passages, best first, that overlap no better one but for the context of a first block."""
    widths = {one.key.key_id: one.key.profile.context_width for one in found}
    for one in disjoint(replace(one, end=one.end - widths[one.key.key_id]) for one in found):
        yield replace(one, end=one.end + widths[one.key.key_id])


def _reach(tried: Sequence[Attempt], versions: int) -> Iterator[Reach]:
    by_profile = {key.profile.profile_id: (attempt, key) for attempt, key, _ in tried}
    for attempt, key in by_profile.values():
        for way in attempt.ways:
            yield Reach(key.profile.watermark(), way.blocks, versions * way.correction)
