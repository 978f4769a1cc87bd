"""From tokens and keys to a finding, and from a finding to a verdict.

Pure, and the same for the service, the command line and bulk runs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.keys.held_keys import UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection.detect import Verdict
from ttmark.shared.watermark.detectors.alignment import AlignedEvidence
from ttmark.shared.watermark.detectors.block_scores import DirectEvidence
from ttmark.shared.watermark.detectors.localized import LocalizedEvidence
from ttmark.shared.watermark.detectors.segments import disjoint
from ttmark.shared.watermark.likelihood.evidence import LikelihoodEvidence
from ttmark.shared.watermark.likelihood.forward_backward import log10_mean
from ttmark.shared.watermark.null_replacement import Redrawn
from ttmark.shared.watermark.nulls import corrected
from ttmark.shared.watermark.schemes.watermark import Watermark

Tokens = NDArray[np.int64]


Evidence = DirectEvidence | AlignedEvidence | LocalizedEvidence | LikelihoodEvidence


@dataclass(frozen=True, slots=True)
class FoundSegment:
    """A watermarked span of tokens [start, end) and the key version that made it.

    Attributes:
        log10_e: log10 of how many passages as strong chance gives, corrected for all versions tried (small
            is strong, unlike `DocumentFinding.log10_e`).
        pool_key: number of the key in the version's pool.
    """

    start: int
    end: int
    log10_e: float
    key: UnlockedKey
    version: UnlockedVersion
    pool_key: int


@dataclass(frozen=True, slots=True)
class Fired:
    """A key of a pool that was found by itself, with its corrected log10 p-value, of localized detection
    its E-value."""

    log10_p: float
    key: UnlockedKey
    version: UnlockedVersion
    pool_key: int


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the best possible score of one kind of key could have led.

    Attributes:
        blocks: the most blocks that count at once.
        correction: the number by which a p-value under such a key is multiplied.
    """

    watermark: Watermark
    blocks: int
    correction: float


@dataclass(frozen=True, slots=True)
class DocumentFinding:
    """The best evidence for one document: of one key version, of all that were tried, of all readings.

    Attributes:
        pool_key: number of the key in the version's pool.
        fired: all keys that are within the rate, each by itself, the smallest p-value first. A text of one
            completion has one; several mean that it was put together from pieces.
        evidence: the detector's result under it; its own p-value counts the version's hypotheses only.
        log10_p: p-value of the document, corrected (Bonferroni) for every hypothesis tried.
        hypotheses: versions x keys of their pools x phases tried on this document, in one reading.
        reach: one for each profile that was tried.
        null_log10_p: p-value under one hypothesis that was chosen without looking, the first phase of the
            first version; uniform over texts without its watermark.
        log10_e: of the mean of E over all keys, versions and readings; None except of the likelihood ratio.
        weight: of the reading.
        segments: disjoint, and in order once all versions were tried; None unless the detector looks for
            segments.
    """

    key: UnlockedKey
    version: UnlockedVersion
    pool_key: int
    fired: tuple[Fired, ...]
    evidence: Evidence
    log10_p: float
    hypotheses: int
    reach: tuple[Reach, ...]
    null_log10_p: float
    log10_e: float | None = None
    segments: tuple[FoundSegment, ...] | None = None
    weight: float = 1.0

    @property
    def z(self) -> float | None:
        return getattr(self.evidence, "z", None)

    @property
    def scored_blocks(self) -> int:
        """Positions that were scored, of direct detection blocks."""
        evidence = self.evidence
        return evidence.scored if isinstance(evidence, LikelihoodEvidence) else evidence.scored_blocks

    @property
    def best_log10_e(self) -> float:
        """log10 E under the best key; 0 except of the likelihood ratio."""
        return float(self.evidence.of_keys.max()) if isinstance(self.evidence, LikelihoodEvidence) else 0.0


Best = tuple[int, DocumentFinding]
"""The best finding of a document, and the way of reading that it is of."""

KeyVersion = tuple[UnlockedKey, UnlockedVersion]
"""A version of a key, with the key."""

Detector = Callable[[Sequence[KeyVersion], Tokens, Redrawn | None], list[DocumentFinding]]
"""Versions of one profile that have as many PRF keys, the document as the profile reads it, rows that are
spent -> what was found under each version."""


def best_finding(
    token_ids: Callable[[UnlockedKey], Tokens],
    versions: Sequence[KeyVersion],
    detector: Detector,
    others: int = 0,
    redrawn: Callable[[UnlockedKey], Redrawn | None] | None = None,
) -> DocumentFinding | None:
    """Tries versions of keys on a document, read in one way.

    Args:
        others: versions of foreign keys that are tried on the document as well.
        redrawn: the document's rows that are spent, as the key's profile reads them.

    Returns:
        The finding with the smallest p-value; None where there is none to try.
    """
    findings = _of_versions(token_ids, versions, detector, redrawn)
    if not findings:
        return None
    tries = len(findings) + others
    step = math.log10(tries)
    best = min(findings, key=lambda one: one.log10_p)
    segments, log10_e = best.segments, None
    if segments is not None:
        found = [replace(one, log10_e=one.log10_e + step) for each in findings for one in each.segments or ()]
        kept = disjoint(sorted(found, key=lambda one: one.log10_e))
        segments = tuple(sorted(kept, key=lambda one: one.start))
    of_keys = [one.evidence.of_keys for one in findings if isinstance(one.evidence, LikelihoodEvidence)]
    if of_keys:
        log10_e = float(log10_mean(np.concatenate(of_keys)))
    fired = [replace(one, log10_p=one.log10_p + step) for each in findings for one in each.fired]
    by_profile = {one.key.profile.profile_id: one.reach[0] for one in findings}
    return replace(
        best,
        fired=tuple(sorted(fired, key=lambda one: one.log10_p)),
        log10_p=corrected(best.log10_p, tries),
        hypotheses=sum(one.hypotheses for one in findings),
        reach=tuple(replace(one, correction=tries * one.correction) for one in by_profile.values()),
        null_log10_p=findings[0].null_log10_p,
        log10_e=log10_e,
        segments=segments,
    )


def _of_versions(
    token_ids: Callable[[UnlockedKey], Tokens],
    versions: Sequence[KeyVersion],
    detector: Detector,
    redrawn: Callable[[UnlockedKey], Redrawn | None] | None,
) -> list[DocumentFinding]:
    """What the detector says under each version; those of one profile are looked for at once."""
    alike: dict[tuple[str, int], list[int]] = {}
    for number, (key, version) in enumerate(versions):
        alike.setdefault((key.profile.profile_id, len(version.prf_keys)), []).append(number)
    found: dict[int, DocumentFinding] = {}
    for numbers in alike.values():
        own = [versions[number] for number in numbers]
        key = own[0][0]
        drawn = redrawn(key) if redrawn is not None else None
        found.update(zip(numbers, detector(own, token_ids(key), drawn), strict=True))
    return [found[number] for number in range(len(versions))]


def best_reading(
    findings: Sequence[DocumentFinding], weights: Sequence[float], fpr: float
) -> tuple[int, DocumentFinding]:
    """Of a document that was read in several ways: the reading with the smallest p-value, and its finding.

    p-values and E-values of passages are divided by the weight of their reading (Bonferroni); passages that
    no longer reach `fpr` are left out. Passages of the other readings are not reported: their tokens are
    counted otherwise. E is the mean by weight.

    Args:
        findings: the reading as it was sent first.
        weights: of the readings, 1 in all.
    """
    limit = math.log10(fpr)
    steps = [-math.log10(weight) for weight in weights]
    best = min(range(len(findings)), key=lambda index: findings[index].log10_p + steps[index])
    finding, step = findings[best], steps[best]
    segments = finding.segments
    if segments is not None:
        segments = tuple(replace(one, log10_e=one.log10_e + step) for one in segments)
        segments = tuple(one for one in segments if one.log10_e <= limit)
    of_readings = [one.log10_e for one in findings if one.log10_e is not None]
    return best, replace(
        finding,
        log10_p=min(0.0, finding.log10_p + step),
        log10_e=float(log10_mean(np.array(of_readings), weights=weights)) if of_readings else None,
        segments=segments,
        fired=tuple(
            replace(one, log10_p=one.log10_p + step) for one in finding.fired if one.log10_p + step <= limit
        ),
        reach=tuple(
            replace(chance, correction=chance.correction / weight)
            for one, weight in zip(findings, weights, strict=True)
            for chance in one.reach
        ),
        null_log10_p=findings[0].null_log10_p,
        weight=weights[best],
    )


# Tokens at which half of marked texts of SmolLM2-135M are found at 1e-1, 1e-2, ..., by score distribution and
# block size. Gumbel pairs as new keys make them, opening and all, by the likelihood ratio without a reader:
# `tests.harness.typical_lengths`. The others in direct detection, marked from the start, T 0.7, top-k 50,
# top-p 0.9: `ttmark eval combined` up to commit 8908aa3. In docs/spec.md, Verdicts.
_MEDIANS: dict[tuple[str, int], tuple[int, ...]] = {
    ("exponential", 2): (24, 36, 48, 60, 71, 80, 94, 104, 114, 124, 134, 144, 152, 160, 170, 180, 188, 196),
    ("binomial-30-0.5", 2): (12, 23, 35, 50, 67, 78, 93, 107, 121, 143, 164, 175, 192),
    ("binomial-12-0.5", 2): (10, 24, 36, 59, 84, 100, 126, 141, 163, 184),
}


def typical_tokens(watermark: Watermark, log10_p: float) -> int:
    """The tokens that half of the texts measured needed for such a p-value, or more.

    A scheme not measured counts as the measured one that needs the fewest. Beyond the smallest p-value
    measured, the last length of the table is returned.
    """
    decades = max(1, math.ceil(-log10_p))
    own = _MEDIANS.get((watermark.null.name, watermark.block_size))
    tables = _MEDIANS.values() if own is None else (own,)
    return min(medians[min(decades, len(medians)) - 1] for medians in tables)


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and, when the document is too short for one, what could be and usually is enough."""

    verdict: Verdict
    tokens_needed: int | None
    tokens_typical: int | None = None


def decide(finding: DocumentFinding | None, fpr: float) -> Decision:
    """Holds a finding to a false positive rate per document.

    A localized finding counts by its segments, which the detector held to `fpr` before.
    """
    if finding is None:
        return Decision("not_detected", None)
    by_passages = finding.segments is not None
    found = bool(finding.segments) if by_passages else finding.log10_p <= math.log10(fpr)
    if found:
        return Decision("watermarked", None)
    return without_finding(finding.reach, fpr)


def without_finding(reaches: Sequence[Reach], fpr: float) -> Decision:
    """Of a document in which nothing was found.

    `too_short`: for every key the text is below the length at which half of marked texts are found at this
    rate, or no score could have reached the rate. That depends on the text's length and the keys, not on a
    score.
    """
    target, tokens, typical = math.log10(fpr), [], []
    for reach in reaches:
        watermark, limit = reach.watermark, target - math.log10(reach.correction)
        size, warmup = watermark.block_size, watermark.warmup_blocks
        needed, usual = watermark.blocks_needed(limit), typical_tokens(watermark, limit)
        if reach.blocks >= max(needed, usual // size - warmup):
            return Decision("not_detected", None)
        tokens.append((warmup + needed) * size)
        typical.append(usual)
    return Decision("too_short", min(tokens), min(typical))
