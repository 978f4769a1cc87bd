"""`GET /v1/keys`: what the caller can detect with."""

from typing import Annotated

from fastapi import APIRouter, Depends

from ttmark.detect_service.api.problems import problems
from ttmark.detect_service.backend import DetectionBackend
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import require
from ttmark.shared.http.json_body import HttpLimits
from ttmark.shared.keys.records import ForeignKey, HeldKey
from ttmark.shared.schemas.detection import MAX_DOCUMENTS
from ttmark.shared.schemas.detection_keys import (
    DetectionKey,
    DetectionKeys,
    DetectionKeyVersion,
    DetectionLimits,
)


def keys_router(
    backend: DetectionBackend, limits: HttpLimits, *, case_days: float | None, queue_days: float | None
) -> APIRouter:
    """The route that lists keys, without secrets, and says how long cases and the queue's items are kept."""
    router = APIRouter(prefix="/v1", tags=["detection"])
    request_limits = DetectionLimits(
        documents=MAX_DOCUMENTS,
        document_tokens=backend.max_document_tokens,
        body_bytes=limits.max_body_bytes,
    )

    @router.get("/keys", responses=problems(401, 403, 429, 503))
    def keys(caller: Annotated[Principal, Depends(require(Scope.DETECT))]) -> DetectionKeys:
        """The keys that the caller may detect with, its scopes, and what one request may hold."""
        return DetectionKeys(
            keys=[_shown(key, backend) for key in backend.keys.for_tenant(caller.tenant)],
            scopes=sorted(caller.scopes),
            rates=None if caller.sees_evidence else list(caller.rates),
            limits=request_limits,
            case_days=case_days,
            queue_days=queue_days,
        )

    return router


def _shown(key: HeldKey, backend: DetectionBackend) -> DetectionKey:
    own = None if isinstance(key, ForeignKey) else key.profile
    return DetectionKey(
        key_id=key.key_id,
        profile=key.profile.profile_id,
        scheme=key.profile.scheme,
        foreign=own is None,
        block_size=own.block_size if own else 1,
        pool=own.pool if own else 1,
        payloads=own is not None and own.payloads,
        tokenizer_fingerprint=key.profile.tokenizer_fingerprint,
        tokenizer_available=key.profile.tokenizer_fingerprint in backend.tokenizers,
        versions=[
            DetectionKeyVersion(version=version.version, state=version.state) for version in key.detectable
        ],
    )
