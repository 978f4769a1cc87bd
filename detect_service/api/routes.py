"""`POST /v1/detect/*`."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from detect_service.api.problems import BODY_PROBLEMS, problems
from detect_service.backend import DetectionBackend
from detect_service.detection import detect
from detect_service.pipeline import Finding
from shared.http.auth import require
from shared.http.request_id import request_id
from shared.keys import Principal, Scope
from shared.observability.detection_metrics import DetectionMetrics
from shared.schemas.detection import (
    AlignedRequest,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
    DirectRequest,
    LocalizedRequest,
)

Detective = Annotated[Principal, Depends(require(Scope.DETECT))]


def detection_router(backend: DetectionBackend, metrics: DetectionMetrics) -> APIRouter:
    """The three detectors."""
    router = APIRouter(prefix="/v1/detect", tags=["detection"], responses=problems(404, *BODY_PROBLEMS))

    def answer(mode: str, body: DetectionRequest, caller: Principal, request: Request) -> DetectionResponse:
        def observe(result: DetectionResult, finding: Finding | None) -> None:
            null_log10_p = finding.null_log10_p if finding else None
            metrics.document(mode, result.verdict, result.tokens, result.hypotheses, null_log10_p)

        return detect(body, caller, backend, request_id(request.scope), observe)

    # Not `async`: detection is computation, so the framework runs it on its thread pool.
    @router.post("/direct")
    def direct(body: DirectRequest, caller: Detective, request: Request) -> DetectionResponse:
        """Unedited text (paper Eq. 6)."""
        return answer("direct", body, caller, request)

    @router.post("/aligned")
    def aligned(body: AlignedRequest, caller: Detective, request: Request) -> DetectionResponse:
        """Edited text (paper Algorithm 2)."""
        return answer("aligned", body, caller, request)

    @router.post("/localized")
    def localized(body: LocalizedRequest, caller: Detective, request: Request) -> DetectionResponse:
        """Watermarked passages inside a longer document."""
        return answer("localized", body, caller, request)

    return router
