"""From a finding to a verdict."""

import math
from dataclasses import dataclass

from detect_service.pipeline import Finding
from shared.schemas.detection import Verdict
from shared.watermark import DirectEvidence


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and, when the document is too short for one, the tokens that could be enough."""

    verdict: Verdict
    tokens_needed: int | None


def decide(finding: Finding | None, fpr: float) -> Decision:
    """Holds a finding to a false positive rate per document.

    `too_short` says that even the best possible score could not have reached `fpr`. A localized
    finding counts by its segments, which the detector held to `fpr` before.
    """
    if finding is None:
        return Decision("not_detected", None)
    target = math.log10(fpr)
    found = finding.log10_p <= target if finding.segments is None else bool(finding.segments)
    if found:
        return Decision("watermarked", None)
    watermark = finding.key.profile.watermark()
    needed = watermark.blocks_needed(target - math.log10(finding.hypotheses))
    if _most_blocks(finding) >= needed:
        return Decision("not_detected", None)
    return Decision("too_short", (watermark.warmup_blocks + needed) * watermark.block_size)


def _most_blocks(finding: Finding) -> int:
    """How many blocks can count at once: alignments choose among overlapping positions."""
    positions = finding.evidence.scored_blocks
    if isinstance(finding.evidence, DirectEvidence):
        return positions
    return -(-positions // finding.key.profile.block_size)
