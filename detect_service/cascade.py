"""When a document is read along by a language model, and what it is worth then.

Two steps share the rate: found without a reader at a tenth of it, with one at nine tenths. Their sum bounds
false positives whatever lets a document through to the second step.
"""

import math
from dataclasses import replace
from typing import Literal

from ttmark.detect_service.verdict import DocumentFinding

FIRST_SHARE = 0.1
SECOND_SHARE = 0.9
# Decades of E under the best of n keys from which on reading may change the verdict: so many times log10 n,
# and less by some; n counts as divided by the weight of the reading. Of texts without a mark about one in ten
# has them (docs/adr/0100).
_READ_FROM, _LESS = 0.8, 0.3
# Of a conversation: of its largest E so far. Of five messages of random words one in ten has it.
_CONVERSATION_FROM = 0.3

ReaderChoice = Literal["auto", "always", "never"]


def may_be_read(finding: DocumentFinding, fpr: float, wanted: ReaderChoice) -> bool:
    """Whether a document is to be read that has this finding without a reader, which counts a tenth."""
    if wanted != "auto":
        return wanted == "always"
    if finding.log10_p <= math.log10(fpr * FIRST_SHARE):
        return False
    return finding.best_log10_e >= _READ_FROM * math.log10(finding.hypotheses / finding.weight) - _LESS


def conversation_may_be_read(log10_p: float, fpr: float, wanted: ReaderChoice) -> bool:
    """Whether a conversation is to be read that has this p-value without a reader, which counts a tenth."""
    if wanted != "auto":
        return wanted == "always"
    return math.log10(fpr * FIRST_SHARE) < log10_p < -_CONVERSATION_FROM


def without_reading(finding: DocumentFinding) -> DocumentFinding:
    """The finding of a document that might have been read and was not: it has its share of the rate."""
    return replace(
        finding, log10_p=_of(finding.log10_p, FIRST_SHARE), log10_e=_weighted(finding.log10_e, None)
    )


def with_reading(first: DocumentFinding, second: DocumentFinding) -> DocumentFinding:
    """Both steps as one: the finding with the smaller p-value, each by its share of the rate."""
    log10_p = _of(first.log10_p, FIRST_SHARE), _of(second.log10_p, SECOND_SHARE)
    return replace(
        first if log10_p[0] < log10_p[1] else second,
        log10_p=min(log10_p),
        log10_e=_weighted(first.log10_e, second.log10_e),
    )


def _of(log10_p: float, share: float) -> float:
    return min(0.0, log10_p - math.log10(share))


def _weighted(first: float | None, second: float | None) -> float | None:
    """log10 of .1 E1 + .9 E2; E2 is 0 where nothing was read."""
    if first is None:
        return None
    parts = [first + math.log10(FIRST_SHARE)]
    if second is not None:
        parts.append(second + math.log10(SECOND_SHARE))
    most = max(parts)
    return most + math.log10(sum(10.0 ** (one - most) for one in parts))
