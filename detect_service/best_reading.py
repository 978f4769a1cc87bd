"""One finding for a document that was read in two ways."""

import math
from collections.abc import Sequence
from dataclasses import replace

from ttmark.detect_service.pipeline import Finding
from ttmark.shared.watermark import corrected


def best_reading(findings: Sequence[Finding], fpr: float) -> tuple[int, Finding]:
    """The reading with the smallest p-value, the first of equals, and its finding.

    The p-value and the E-values of passages are corrected for the number of readings (Bonferroni); passages
    that no longer reach `fpr` are left out. Passages of the other readings are not reported: their tokens are
    counted otherwise.

    Args:
        findings: of one document, the reading as it was sent first.
    """
    count = len(findings)
    best = min(range(count), key=lambda index: findings[index].log10_p)
    finding = findings[best]
    if count == 1:
        return best, finding
    step = math.log10(count)
    segments = finding.segments
    if segments is not None:
        segments = tuple(replace(one, log10_e=one.log10_e + step) for one in segments)
        segments = tuple(one for one in segments if one.log10_e <= math.log10(fpr))
    return best, replace(
        finding,
        log10_p=corrected(finding.log10_p, count),
        hypotheses=sum(one.hypotheses for one in findings),
        segments=segments,
        fired=tuple(one + step for one in finding.fired if one + step <= math.log10(fpr)),
        reach=tuple(chance.among(count) for one in findings for chance in one.reach),
        null_log10_p=findings[0].null_log10_p,
    )
