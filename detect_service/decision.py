"""From a finding to a verdict."""

import math
from dataclasses import dataclass

from ttmark.detect_service.pipeline import Finding
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

    `too_short` says that even the best possible score under any key could not have reached `fpr`: it depends
    on the document's length and the keys, not on which of them came closest. A localized finding counts by
    its segments, which the detector held to `fpr` before.
    """
    if finding is None:
        return Decision("not_detected", None)
    target = math.log10(fpr)
    by_passages = isinstance(finding.evidence, LocalizedEvidence)
    found = bool(finding.segments) if by_passages else finding.log10_p <= target
    if found:
        return Decision("watermarked", None)
    tokens, typical = [], []
    for reach in finding.reach:
        needed = reach.watermark.blocks_needed(target - math.log10(reach.correction))
        if reach.blocks >= needed:
            return Decision("not_detected", None)
        tokens.append((reach.watermark.warmup_blocks + needed) * reach.watermark.block_size)
        usual = typical_tokens(reach.watermark, target - math.log10(reach.correction))
        typical += [] if usual is None else [usual]
    return Decision("too_short", min(tokens), min(typical, default=None))
