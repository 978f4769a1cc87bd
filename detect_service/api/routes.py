"""`POST /v1/detect/*`."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from detect_service import detection
from detect_service.api.problems import BODY_PROBLEMS, problems
from detect_service.backend import DetectionBackend
from shared.http.auth import require
from shared.http.request_id import request_id
from shared.keys import Principal, Scope
from shared.observability.detection_metrics import DetectionMetrics
from shared.schemas.detection import DetectionResponse, DirectRequest

Detective = Annotated[Principal, Depends(require(Scope.DETECT))]


def detection_router(backend: DetectionBackend, metrics: DetectionMetrics) -> APIRouter:
    """The three detectors."""
    router = APIRouter(prefix="/v1/detect", tags=["detection"], responses=problems(404, *BODY_PROBLEMS))

    # Not `async`: detection is computation, so the framework runs it on its thread pool.
    @router.post("/direct")
    def detect_direct(body: DirectRequest, caller: Detective, request: Request) -> DetectionResponse:
        """Direct detection of unedited text (paper Eq. 6)."""
        response = detection.direct(body, caller, backend, request_id(request.scope))
        metrics.observe_response("direct", response)
        return response

    return router
