"""The paper's statistics as methods of the service."""

from ttmark.detect_service.method import Look, Method
from ttmark.detect_service.paper.cost import paper_cost
from ttmark.detect_service.paper.detectors import aligned, direct, localized
from ttmark.detect_service.verdict import Detector
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
    DirectRequest,
    LocalizedRequest,
)
from ttmark.shared.watermark.detectors.alignment import BETA


def _direct(request: DirectRequest, look: Look) -> Detector:
    return direct(request.phase_of(look.document), look.log10_limit)


def _aligned(request: AlignedRequest, look: Look) -> Detector:
    return aligned(request.beta, look.log10_limit)


def _localized(request: LocalizedRequest, look: Look) -> Detector:
    return localized(request.method, look.log10_limit)


PAPER: dict[type[DetectionRequest], Method] = {
    DirectRequest: Method(_direct, paper_cost, DetectionResult, DetectionResponse, lambda _: BETA),
    AlignedRequest: Method(_aligned, paper_cost, DetectionResult, DetectionResponse, lambda one: one.beta),
    LocalizedRequest: Method(_localized, paper_cost, DetectionResult, DetectionResponse, lambda _: BETA),
}
