"""What callers ask: `POST /v1/detect` and `/v1/detect/*`; and what they can ask with: `GET /v1/keys`."""

from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter, Request, Response

from ttmark.detect_service.api.admission import Admission
from ttmark.detect_service.api.body_route import body_route, body_size
from ttmark.detect_service.api.metrics_and_audit import DetectionMetrics, Journal
from ttmark.detect_service.api.problems import BODY_PROBLEMS, Caller, problems
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.cases.case_writer import Cases
from ttmark.detect_service.detection_request import Detection, answered_evenly
from ttmark.detect_service.key_selection import check_askable, permitted
from ttmark.detect_service.manifests.manifest_examiner import ManifestExaminer, with_manifests_of
from ttmark.detect_service.model_reader.reads_along import ReadsAlong
from ttmark.detect_service.results import response_json
from ttmark.detect_service.spending import spending_of
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.cases.signed_file import CaseKey
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.keys.records import ForeignKey, HeldKey
from ttmark.shared.languages.words import preferred_words
from ttmark.shared.limits.allowances import DocumentAllowance
from ttmark.shared.observability.tracing import request_id
from ttmark.shared.schemas.detection import (
    MAX_DOCUMENTS,
    AlignedRequest,
    CombinedRequest,
    CombinedResponse,
    DetectionKey,
    DetectionKeys,
    DetectionKeyVersion,
    DetectionLimits,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
    DirectRequest,
    LocalizedRequest,
)
from ttmark.shared.vault.audit_events import AuditSink


def detection_router(
    backend: DetectionBackend,
    metrics: DetectionMetrics,
    allowance: DocumentAllowance | None,
    audit: AuditSink,
    admission: Admission,
    case_key: CaseKey | None,
    examiner: ManifestExaminer,
    reader: ReadsAlong,
) -> APIRouter:
    """The likelihood ratio, and the paper's three detectors; `case_key` signs cases."""
    spending = spending_of(allowance, backend)
    router = APIRouter(
        prefix="/v1/detect",
        tags=["detection"],
        responses=problems(404, *BODY_PROBLEMS),
        route_class=body_route(Scope.DETECT, admission.run_long, admission.shorten),
    )

    async def answer(mode: str, body: DetectionRequest, caller: Principal, request: Request) -> Response:
        sent = await admission.sized(permitted(body, caller), caller, request)
        parts = await examiner.part(sent, backend.label)
        body = await admission.within_limits(parts.visible, caller, request)
        selection = check_askable(body, caller, backend)
        counted = None
        if allowance is not None:
            await allowance.take(caller, len(body.inputs))
        if spending is not None and not caller.sees_evidence:
            run = partial(admission.run_long, request, body_size(request))
            counted = await spending.ask(body, mode, caller, selection, run)
        manifests = await examiner.examine(parts.texts, caller.tenant)

        journal, identifier = Journal(mode, metrics), request_id(request.scope)
        words = preferred_words(request.headers.get("accept-language"))
        cases = Cases(sent, mode, case_key, identifier)

        def finish(index: int, result: DetectionResult, skipped_keys: Sequence[str]) -> DetectionResult:
            result = with_manifests_of(index, result, parts, manifests, words)
            spent = None if counted is None else counted.named(index)
            return cases.added(index, result, skipped_keys, spent)

        def render(response: DetectionResponse) -> Response:
            journal.close(caller, identifier, audit)
            # Serialised here: the framework would validate the model a second time.
            return Response(response_json(response), media_type="application/json")

        blocks = await admission.admit(mode, body, caller, selection)
        detection = Detection(
            body, caller, backend, identifier, journal, finish, counted, reader.state, words, selection
        )
        work = partial(admission.done, blocks, caller, request)
        return await answered_evenly(detection, work, reader, render, spending)

    @router.post("", response_model=CombinedResponse)
    async def combined(body: CombinedRequest, caller: Caller, request: Request) -> Response:
        """Whether a text contains passages made with the keys: unedited, edited, or inside a longer text."""
        return await answer("combined", body, caller, request)

    @router.post("/direct", response_model=DetectionResponse)
    async def direct(body: DirectRequest, caller: Caller, request: Request) -> Response:
        """Unedited text (paper Eq. 6)."""
        return await answer("direct", body, caller, request)

    @router.post("/aligned", response_model=DetectionResponse)
    async def aligned(body: AlignedRequest, caller: Caller, request: Request) -> Response:
        """Edited text (paper Algorithm 2)."""
        return await answer("aligned", body, caller, request)

    @router.post("/localized", response_model=DetectionResponse)
    async def localized(body: LocalizedRequest, caller: Caller, request: Request) -> Response:
        """Watermarked passages inside a longer document."""
        return await answer("localized", body, caller, request)

    return router


def keys_router(backend: DetectionBackend, limits: HttpLimits) -> APIRouter:
    """The route that lists keys, without secrets."""
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
