"""`POST /v1/detect/direct`, `/aligned` and `/localized`."""

from fastapi import APIRouter, Request, Response

from ttmark.detect_service.api.admission import Admission
from ttmark.detect_service.api.problems import Caller
from ttmark.detect_service.api.routes import Answering, asking_router
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    DetectionResponse,
    DirectRequest,
    LocalizedRequest,
)


def paper_router(answer: Answering, admission: Admission) -> APIRouter:
    router = asking_router(admission)

    @router.post("/direct", response_model=DetectionResponse)
    async def direct(body: DirectRequest, caller: Caller, request: Request) -> Response:
        """Unedited text (paper Eq. 6)."""
        return await answer(body, caller, request)

    @router.post("/aligned", response_model=DetectionResponse)
    async def aligned(body: AlignedRequest, caller: Caller, request: Request) -> Response:
        """Edited text (paper Algorithm 2)."""
        return await answer(body, caller, request)

    @router.post("/localized", response_model=DetectionResponse)
    async def localized(body: LocalizedRequest, caller: Caller, request: Request) -> Response:
        """Watermarked passages inside a longer document."""
        return await answer(body, caller, request)

    return router
