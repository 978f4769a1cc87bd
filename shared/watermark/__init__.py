"""The watermark core: pure functions of tokens, keys and probabilities."""

from ttmark.shared.watermark.detectors.alignment import AlignedEvidence, detect_aligned
from ttmark.shared.watermark.detectors.block_scores import DirectEvidence, detect_direct
from ttmark.shared.watermark.detectors.localized import LocalizedEvidence, detect_localized
from ttmark.shared.watermark.detectors.segments import LocalizedSegment
from ttmark.shared.watermark.nulls import corrected
from ttmark.shared.watermark.prf import ContextTracker, key_lanes, scored_positions
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.watermark import Watermark

__all__ = [
    "AlignedEvidence",
    "ContextTracker",
    "DirectEvidence",
    "LocalizedEvidence",
    "LocalizedSegment",
    "Watermark",
    "corrected",
    "detect_aligned",
    "detect_direct",
    "detect_localized",
    "key_lanes",
    "scheme_names",
    "scored_positions",
]
