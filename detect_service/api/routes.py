"""What callers ask: `POST /v1/detect`; and what they can ask with: `GET /v1/keys`."""

from collections.abc import Callable
from typing import Protocol

from fastapi import APIRouter, Request, Response

from ttmark.detect_service.api.admission import Admission, HttpGate
from ttmark.detect_service.api.body_route import body_route
from ttmark.detect_service.api.metrics import DetectionMetrics, Journal
from ttmark.detect_service.api.problems import BODY_PROBLEMS, Caller, problems
from ttmark.detect_service.ask import Means, ask
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.question import Question
from ttmark.detect_service.results import response_json
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.events import EventSink
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.http.request_id import request_id
from ttmark.shared.keys.held_keys import ForeignKey, HeldKey
from ttmark.shared.languages.words import preferred_words
from ttmark.shared.schemas.detection.detect import (
    MAX_DOCUMENTS,
    CombinedRequest,
    CombinedResponse,
    DetectionRequest,
    DetectionResponse,
)
from ttmark.shared.schemas.detection.detection_keys import (
    DetectionKey,
    DetectionKeys,
    DetectionKeyVersion,
    DetectionLimits,
)

Written = Callable[[DetectionResponse], bytes]
"""The answer in JSON."""


class Answering(Protocol):
    """Of a request that came in by HTTP."""

    async def __call__(
        self, body: DetectionRequest, caller: Principal, request: Request, written: Written = response_json
    ) -> Response: ...


def answers(means: Means, metrics: DetectionMetrics, audit: EventSink, admission: Admission) -> Answering:
    async def answer(
        body: DetectionRequest, caller: Principal, request: Request, written: Written = response_json
    ) -> Response:
        journal = Journal(body.mode, metrics, request.scope["path"], request.scope["state"])
        words = preferred_words(request.headers.get("accept-language"))

        def render(response: DetectionResponse) -> Response:
            journal.close(caller, audit)
            # Serialised here: the framework would validate the model a second time.
            return Response(written(response), media_type="application/json")

        question = Question(body, caller, request_id(request.scope), journal, words)
        return await ask(question, means, HttpGate(admission, caller, request), render)

    return answer


def asking_router(admission: Admission) -> APIRouter:
    return APIRouter(
        prefix="/v1/detect",
        tags=["detection"],
        responses=problems(404, *BODY_PROBLEMS),
        route_class=body_route(Scope.DETECT, admission.run_long, admission.shorten),
    )


def detection_router(answer: Answering, admission: Admission) -> APIRouter:
    """The one question: the likelihood ratio."""
    router = asking_router(admission)

    @router.post("", response_model=CombinedResponse)
    async def combined(body: CombinedRequest, caller: Caller, request: Request) -> Response:
        """Whether a text contains passages made with the keys: unedited, edited, or inside a longer text."""
        return await answer(body, caller, request)

    return router


def keys_router(backend: DetectionBackend, limits: HttpLimits) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["detection"])
    request_limits = DetectionLimits(
        documents=MAX_DOCUMENTS,
        document_tokens=backend.max_document_tokens,
        body_bytes=limits.max_body_bytes,
    )

    @router.get("/keys", responses=problems(401, 403, 429, 503))
    def keys(caller: Caller) -> DetectionKeys:
        """The keys that the caller may detect with, its scopes, and what one request may hold."""
        return DetectionKeys(
            keys=[_shown(key, backend) for key in backend.keys.for_tenant(caller.tenant)],
            scopes=sorted(caller.scopes),
            rates=None if caller.sees_evidence else list(caller.rates),
            limits=request_limits,
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
