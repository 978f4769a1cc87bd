"""The detector that a request asks for."""

import math
from collections.abc import Callable

from ttmark.detect_service.detectors import Detector
from ttmark.detect_service.likelihood_detector import LikelihoodDetector
from ttmark.detect_service.paper_detectors import aligned, direct, localized
from ttmark.shared.keys.unlocked import UnlockedKey
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
)
from ttmark.shared.watermark.likelihood.reading import Reading


def detector_for(
    request: DetectionRequest,
    document: Document,
    tries: int,
    *,
    share: float,
    secret: bytes,
    reading: Callable[[UnlockedKey], Reading | None],
) -> Detector:
    """The detector with the request's options, for one way to read a document.

    Args:
        tries: how many key versions are tried on how many readings of the document.
        share: of the rate, for the likelihood ratio.
        secret: that seeds its draws.
        reading: what a language model says of the document's tokens under a key.
    """
    limit = math.log10(request.fpr) - math.log10(max(1, tries))
    match request:
        case DirectRequest():
            return direct(request.phase_of(document), limit)
        case AlignedRequest():
            return aligned(request.beta, limit)
        case LocalizedRequest():
            return localized(request.method, limit)
        case CombinedRequest():
            return LikelihoodDetector(limit + math.log10(share), secret, reading)
        case _:
            raise TypeError(f"no detector for {type(request).__name__}")
