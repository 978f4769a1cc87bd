"""From a finding to a verdict, and how many tokens a text usually needs for one.

The theoretical least is what no real text reaches: the usual lengths are measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ttmark.detect_service.pipeline import Finding, Reach
from ttmark.shared.schemas.detection import Verdict
from ttmark.shared.watermark import LocalizedEvidence, Watermark

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

    A scheme that was not measured counts as the one of those measured that needs the fewest. Below the
    smallest p-value that half of the texts had, its length is what they needed at least.
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
