"""How much of a document that was found carries the mark."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.detectors import Tokens
from ttmark.detect_service.pipeline import Finding, FoundSegment
from ttmark.shared.keys.unlocked import UnlockedKey
from ttmark.shared.schemas.detection_combined import MarkedShare
from ttmark.shared.watermark.detectors.extent import Extent, extent, unseen
from ttmark.shared.watermark.detectors.positions import position_scores
from ttmark.shared.watermark.detectors.scan import DRIFT_PER_TOKEN, best_peak

Scores = NDArray[np.float64]


def marked_share(finding: Finding, token_ids: Callable[[UnlockedKey], Tokens]) -> MarkedShare:
    """The share of the tokens in passages that carry the mark, and a 95 % interval for it.

    Passages are those of the finding; where it has none, the best one under its key. Their doubts add up, and
    the upper end allows for marked text that is too faint to be seen.

    Args:
        token_ids: of the reading that the finding is of.
    """
    scores = _position_scores(finding, token_ids)
    passages = list(finding.segments or ()) or [_best_passage(finding, scores)]
    extents: list[Extent] = []
    estimate = low = high = 0.0
    for index, passage in enumerate(passages):
        width, size = passage.key.profile.context_width, passage.key.profile.block_size
        if passage.end - width - passage.start < size:
            return MarkedShare(estimate=0.0, low=0.0, high=1.0)
        own = _position_scores(passage, token_ids)
        before, after = passages[:index][-1:], passages[index + 1 :][:1]
        found = extent(
            own,
            size,
            passage.start,
            passage.end - width,
            low=min(passage.start, before[0].end - width) if before else 0,
            high=max(passage.end - width, after[0].start) if after else own.size + size - 1,
        )
        tokens = own.size + size - 1 + width
        inner, outer = found.inner[1] - found.inner[0], found.outer[1] - found.outer[0]
        estimate += (passage.end - passage.start) / tokens
        low += (inner + width) / tokens if inner > 0 else 0.0
        high += (outer + width) / tokens
        extents.append(found)
    rest = np.ones(scores.size, dtype=np.bool_)
    for found in extents:
        rest[found.outer[0] : found.outer[1]] = False
    mean = min(found.mean for found in extents)
    high += unseen(scores[rest], finding.key.profile.block_size, mean) * np.count_nonzero(rest) / scores.size
    estimate, high = min(1.0, estimate), min(1.0, high)
    return MarkedShare(estimate=estimate, low=min(low, estimate), high=max(high, estimate))


def _position_scores(made_with: Finding | FoundSegment, token_ids: Callable[[UnlockedKey], Tokens]) -> Scores:
    """Of the whole document, as the key's profile reads it."""
    key = made_with.key
    prf_key = made_with.version.prf_keys[made_with.pool_key]
    return position_scores(key.profile.watermark(), prf_key, token_ids(key))


def _best_passage(finding: Finding, scores: Scores) -> FoundSegment:
    size = finding.key.profile.block_size
    peak = best_peak(scores.tolist(), size, DRIFT_PER_TOKEN * size, 0, scores.size + size - 1)
    end = peak.end + finding.key.profile.context_width
    return FoundSegment(peak.start, end, 0.0, finding.key, finding.version, finding.pool_key)
