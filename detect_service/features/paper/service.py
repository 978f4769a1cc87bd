"""Opens the feature: the paper's three detectors, `POST /v1/detect/direct`, `/aligned` and `/localized`."""

from fastapi import Request, Response

from ttmark.detect_service.api.features import Application, DetectionFeature, Part
from ttmark.detect_service.api.problems import Caller
from ttmark.detect_service.api.routes import asking_router
from ttmark.services.composition.opening import Opening
from ttmark.shared.schemas.detection.detect import (
    AlignedRequest,
    DetectionResponse,
    DirectRequest,
    LocalizedRequest,
)


def opened(_: Opening) -> DetectionFeature:
    return FEATURE


def _part(app: Application) -> Part:
    router = asking_router(app.admission)

    @router.post("/direct", response_model=DetectionResponse)
    async def direct(body: DirectRequest, caller: Caller, request: Request) -> Response:
        """Unedited text (paper Eq. 6)."""
        return await app.answer(body, caller, request)

    @router.post("/aligned", response_model=DetectionResponse)
    async def aligned(body: AlignedRequest, caller: Caller, request: Request) -> Response:
        """Edited text (paper Algorithm 2)."""
        return await app.answer(body, caller, request)

    @router.post("/localized", response_model=DetectionResponse)
    async def localized(body: LocalizedRequest, caller: Caller, request: Request) -> Response:
        """Watermarked passages inside a longer document."""
        return await app.answer(body, caller, request)

    return Part([router])


FEATURE = DetectionFeature(_part)
