"""From a finding to a verdict."""

import math
from dataclasses import dataclass

from ttmark.detect_service.pipeline import Finding
from ttmark.shared.schemas.detection import Verdict


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and, when the document is too short for one, the tokens that could be enough."""

    verdict: Verdict
    tokens_needed: int | None


def decide(finding: Finding | None, fpr: float) -> Decision:
    """Holds a finding to a false positive rate per document.

    `too_short` says that even the best possible score under any key could not have reached `fpr`: it depends
    on the document's length and the keys, not on which of them came closest. A localized finding counts by
    its segments, which the detector held to `fpr` before.
    """
    if finding is None:
        return Decision("not_detected", None)
    target = math.log10(fpr)
    found = finding.log10_p <= target if finding.segments is None else bool(finding.segments)
    if found:
        return Decision("watermarked", None)
    tokens = []
    for reach in finding.reach:
        needed = reach.watermark.blocks_needed(target - math.log10(reach.correction))
        if reach.blocks >= needed:
            return Decision("not_detected", None)
        tokens.append((reach.watermark.warmup_blocks + needed) * reach.watermark.block_size)
    return Decision("too_short", min(tokens))
