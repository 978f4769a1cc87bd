"""`POST /v1/detect/*`."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool

from detect_service.allowance import DocumentAllowance
from detect_service.api.journal import Journal
from detect_service.api.problems import BODY_PROBLEMS, problems
from detect_service.backend import DetectionBackend
from detect_service.detection import detect
from shared.http.auth import require
from shared.http.body_route import body_route
from shared.http.request_id import request_id
from shared.keys import AuditSink, Principal, Scope
from shared.observability.detection_metrics import DetectionMetrics
from shared.schemas.detection import (
    AlignedRequest,
    DetectionRequest,
    DetectionResponse,
    DirectRequest,
    LocalizedRequest,
)

Detective = Annotated[Principal, Depends(require(Scope.DETECT))]

# A request with less to read takes a few milliseconds: less than handing it to another thread and back costs
# when requests come one after another. A larger one must not keep the others waiting.
_INLINE_CHARACTERS = 8192
_CHARACTERS_IN_A_TOKEN = 4


def detection_router(
    backend: DetectionBackend, metrics: DetectionMetrics, allowance: DocumentAllowance, audit: AuditSink
) -> APIRouter:
    """The three detectors."""
    router = APIRouter(
        prefix="/v1/detect",
        tags=["detection"],
        responses=problems(404, *BODY_PROBLEMS),
        route_class=body_route(Scope.DETECT),
    )

    async def answer(mode: str, body: DetectionRequest, caller: Principal, request: Request) -> Response:
        await allowance.take(caller, body.inputs)

        def examine() -> Response:
            journal = Journal(mode, metrics)
            identifier = request_id(request.scope)
            response = detect(body, caller, backend, identifier, journal)
            journal.close(caller, identifier, audit)
            # Serialised here: the framework would validate the model a second time.
            return Response(response.model_dump_json(), media_type="application/json")

        return examine() if _size(body) <= _INLINE_CHARACTERS else await run_in_threadpool(examine)

    @router.post("/direct", response_model=DetectionResponse)
    async def direct(body: DirectRequest, caller: Detective, request: Request) -> Response:
        """Unedited text (paper Eq. 6)."""
        return await answer("direct", body, caller, request)

    @router.post("/aligned", response_model=DetectionResponse)
    async def aligned(body: AlignedRequest, caller: Detective, request: Request) -> Response:
        """Edited text (paper Algorithm 2)."""
        return await answer("aligned", body, caller, request)

    @router.post("/localized", response_model=DetectionResponse)
    async def localized(body: LocalizedRequest, caller: Detective, request: Request) -> Response:
        """Watermarked passages inside a longer document."""
        return await answer("localized", body, caller, request)

    return router


def _size(body: DetectionRequest) -> int:
    """Characters to read, a token counted as a few."""
    return sum(
        len(document.text or "") + _CHARACTERS_IN_A_TOKEN * len(document.token_ids or ())
        for document in body.inputs
    )
