"""`POST /v1/detect/*` and `GET /v1/keys`."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from shared.observability.detection_metrics import DetectionMetrics

from detect_service import detection
from detect_service.backend import DetectionBackend
from shared.http.auth import require
from shared.http.request_id import request_id
from shared.keys import Principal, Scope
from shared.schemas.detection import (
    DetectionKey,
    DetectionKeys,
    DetectionKeyVersion,
    DetectionResponse,
    DirectRequest,
)
from shared.schemas.errors import ProblemDocument

Detective = Annotated[Principal, Depends(require(Scope.DETECT))]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemDocument, "description": description}
    for status, description in {
        400: "The body is not strict JSON",
        401: "No valid access token",
        403: "The token lacks a scope",
        404: "Unknown key",
        408: "The body did not arrive in time",
        413: "Body or document too large",
        415: "The body is not uncompressed JSON",
        422: "A field is at fault; `param` names it",
        503: "Not ready",
    }.items()
}


def detection_router(backend: DetectionBackend, metrics: DetectionMetrics) -> APIRouter:
    """All routes that need a token."""
    router = APIRouter(prefix="/v1", tags=["detection"])

    # Not `async`: detection is computation, so the framework runs it on its thread pool.
    @router.post("/detect/direct", responses=PROBLEMS)
    def detect_direct(body: DirectRequest, caller: Detective, request: Request) -> DetectionResponse:
        """Direct detection of unedited text (paper Eq. 6)."""
        response = detection.direct(body, caller, backend, request_id(request.scope))
        metrics.observe_response("direct", response)
        return response

    @router.get("/keys", responses={code: PROBLEMS[code] for code in (401, 403)})
    def keys(caller: Detective) -> DetectionKeys:
        """The keys that the caller may detect with; no secrets."""
        return DetectionKeys(
            keys=[
                DetectionKey(
                    key_id=key.key_id,
                    profile=key.profile.profile_id,
                    scheme=key.profile.scheme,
                    block_size=key.profile.block_size,
                    tokenizer_fingerprint=key.profile.tokenizer_fingerprint,
                    tokenizer_available=key.profile.tokenizer_fingerprint in backend.tokenizers,
                    versions=[
                        DetectionKeyVersion(version=version.version, state=version.state)
                        for version in key.detectable
                    ],
                )
                for key in backend.keys.for_tenant(caller.tenant)
            ]
        )

    return router
