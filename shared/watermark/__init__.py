"""The watermark core: pure functions of tokens, keys and probabilities."""

from shared.watermark.contexts import ContextTracker, scored_positions
from shared.watermark.detectors.aligned import AlignedEvidence, detect_aligned
from shared.watermark.detectors.direct import DirectEvidence, detect_direct
from shared.watermark.detectors.localized import LocalizedEvidence, detect_localized
from shared.watermark.detectors.segments import Segment
from shared.watermark.prf import key_lanes
from shared.watermark.schemes.registry import scheme_names
from shared.watermark.tails import corrected
from shared.watermark.watermark import Watermark

__all__ = [
    "AlignedEvidence",
    "ContextTracker",
    "DirectEvidence",
    "LocalizedEvidence",
    "Segment",
    "Watermark",
    "corrected",
    "detect_aligned",
    "detect_direct",
    "detect_localized",
    "key_lanes",
    "scheme_names",
    "scored_positions",
]
