"""From a finding to a verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ttmark.detect_service.pipeline import Finding, Reach
from ttmark.detect_service.typical_lengths import typical_tokens
from ttmark.shared.schemas.detection import Verdict
from ttmark.shared.watermark import LocalizedEvidence


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and, when the document is too short for one, what could be and usually is enough."""

    verdict: Verdict
    tokens_needed: int | None
    tokens_typical: int | None = None


def decide(finding: Finding | None, fpr: float) -> Decision:
    """Holds a finding to a false positive rate per document.

    A localized finding counts by its segments, which the detector held to `fpr` before.
    """
    if finding is None:
        return Decision("not_detected", None)
    by_passages = isinstance(finding.evidence, LocalizedEvidence)
    found = bool(finding.segments) if by_passages else finding.log10_p <= math.log10(fpr)
    if found:
        return Decision("watermarked", None)
    return without_finding(finding.reach, fpr)


def without_finding(reaches: Sequence[Reach], fpr: float) -> Decision:
    """Of a document in which nothing was found.

    `too_short`: under every key it is shorter than half of marked texts need at this rate, or even the best
    possible score could not have reached it. That depends on the document's length and the keys, not on a
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
