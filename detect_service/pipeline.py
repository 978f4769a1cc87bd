"""Token ids and keys in, evidence out: pure, the same for the service, the command line and bulk runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.keys import UnlockedKey
from shared.schemas.detection import Verdict
from shared.watermark import DirectEvidence, Watermark

Tokens = NDArray[np.int64]
Detector = Callable[[Watermark, bytes, Tokens], DirectEvidence]


@dataclass(frozen=True, slots=True)
class Finding:
    """The best evidence over all keys and versions that were tried on one document.

    Attributes:
        key: the key whose version gave the evidence.
        version: that version's number.
        evidence: the detector's result under it; its own p-value counts its own hypotheses only.
        log10_p: p-value of the document, corrected (Bonferroni) for every hypothesis tried.
        hypotheses: versions x phases tried on this document.
    """

    key: UnlockedKey
    version: int
    evidence: DirectEvidence
    log10_p: float
    hypotheses: int


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
        (detector(key.profile.watermark(), version.prf_key, token_ids(key)), key, version.version)
        for key in keys
        for version in key.detectable
    ]
    if not tried:
        return None
    evidence, key, version = min(tried, key=lambda attempt: attempt[0].log10_p)
    log10_p = min(0.0, evidence.log10_p + math.log10(len(tried)))
    hypotheses = sum(attempt[0].hypotheses for attempt in tried)
    return Finding(key, version, evidence, log10_p, hypotheses)


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and, when the document is too short for one, the tokens that could be enough."""

    verdict: Verdict
    tokens_needed: int | None


def decide(finding: Finding | None, fpr: float) -> Decision:
    """Holds a finding to a false positive rate per document.

    `too_short` says that even the best possible score could not have reached `fpr`.
    """
    if finding is None:
        return Decision("not_detected", None)
    target = math.log10(fpr)
    if finding.log10_p <= target:
        return Decision("watermarked", None)
    watermark = finding.key.profile.watermark()
    blocks = watermark.blocks_needed(target - math.log10(finding.hypotheses))
    if finding.evidence.scored_blocks >= blocks:
        return Decision("not_detected", None)
    return Decision("too_short", (watermark.warmup_blocks + blocks) * watermark.block_size)
