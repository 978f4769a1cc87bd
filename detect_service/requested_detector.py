"""The detector that a request asks for."""

import math
from collections.abc import Sequence

from ttmark.detect_service.combined_detector import combined
from ttmark.detect_service.detectors import BatchDetector
from ttmark.detect_service.direct_detector import direct
from ttmark.detect_service.position_detectors import aligned, localized
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
    usual_phase,
)


def detector_for(request: DetectionRequest, documents: Sequence[Document], versions: int) -> BatchDetector:
    """The detector with the request's options, when `versions` key versions are tried on each document."""
    limit = math.log10(request.fpr) - math.log10(max(1, versions))
    match request:
        case DirectRequest():
            return direct([request.phase_of(document) for document in documents], limit)
        case AlignedRequest():
            return aligned(request.beta, limit)
        case LocalizedRequest():
            return localized(request.method, limit)
        case CombinedRequest():
            return combined([usual_phase(document) for document in documents], limit)
        case _:
            raise TypeError(f"no detector for {type(request).__name__}")
