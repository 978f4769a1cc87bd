"""The watermark core: pure functions of tokens, keys and probabilities."""

from shared.watermark.contexts import ContextTracker, scored_positions
from shared.watermark.detectors.direct import DirectEvidence, detect_direct
from shared.watermark.prf import key_lanes
from shared.watermark.schemes.registry import scheme_names
from shared.watermark.watermark import Watermark

__all__ = [
    "ContextTracker",
    "DirectEvidence",
    "Watermark",
    "detect_direct",
    "key_lanes",
    "scheme_names",
    "scored_positions",
]
