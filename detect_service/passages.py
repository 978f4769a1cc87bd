"""Which passages of a document that was found carry the mark, and how much of it they are."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ttmark.detect_service.detectors import Tokens
from ttmark.detect_service.pipeline import Finding, FoundSegment
from ttmark.shared.keys.unlocked import UnlockedKey
from ttmark.shared.schemas.detection_combined import MarkedShare
from ttmark.shared.watermark.detectors.segments import disjoint
from ttmark.shared.watermark.likelihood.marked_passages import find_carried
from ttmark.shared.watermark.likelihood.reading import Reading


@dataclass(frozen=True, slots=True)
class _Core:
    """What surely belongs to a passage: tokens [start, end)."""

    start: int
    end: int
    passage: FoundSegment


def marked_passages(
    finding: Finding,
    token_ids: Callable[[UnlockedKey], Tokens],
    reading: Callable[[UnlockedKey], Reading | None],
) -> tuple[tuple[FoundSegment, ...], MarkedShare]:
    """The passages of all keys that were found, in order and disjoint, and the share of the tokens in them.

    Passages of two keys meet half-way between what surely belongs to each; where that overlaps, the one whose
    evidence is stronger stays. The E-value of a passage is at most that of its evidence, times all passages
    that the document could have and all keys tried.

    Args:
        token_ids, reading: of the way of reading that the finding is of.
    """
    found: list[_Core] = []
    estimate = low = high = 0.0
    makers = [(one.key, one.version, one.pool_key) for one in finding.fired]
    for key, version, pool_key in makers or [(finding.key, finding.version, finding.pool_key)]:
        tokens = token_ids(key)
        carried = find_carried(
            key.profile.watermark(), version.prf_keys[pool_key], tokens, reading=reading(key)
        )
        step = math.log10(max(1, tokens.size * (tokens.size + 1) // 2) * finding.hypotheses)
        for one in carried.passages:
            start, end = one.inner if one.inner[0] < one.inner[1] else (one.start, one.end)
            passage = FoundSegment(one.start, one.end, step - one.log10_gain, key, version, pool_key)
            found.append(_Core(start, end, passage))
        own_low, own_high = carried.share_interval
        estimate, low, high = estimate + carried.share, low + own_low, high + own_high
    kept = disjoint(sorted(found, key=lambda one: one.passage.log10_e))
    estimate, high = min(1.0, estimate), min(1.0, high)
    share = MarkedShare(estimate=estimate, low=min(low, estimate), high=max(high, estimate))
    return tuple(_meeting(sorted(kept, key=lambda one: one.start))), share


def _meeting(cores: Sequence[_Core]) -> list[FoundSegment]:
    """The passages of disjoint cores in order, none beyond where it meets the next."""
    passages = [core.passage for core in cores]
    for number, (core, after) in enumerate(itertools.pairwise(cores)):
        before, passage = passages[number], after.passage
        if before.end > passage.start:
            meet = max(core.end, min(after.start, (before.end + passage.start) // 2))
            passages[number : number + 2] = replace(before, end=meet), replace(passage, start=meet)
    return passages
