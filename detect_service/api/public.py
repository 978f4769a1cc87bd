"""`POST /v1/detect/public`: one text, one decision; and the document that says how to ask."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from ttmark.detect_service.answer_timing import leave_evenly, step_seconds
from ttmark.detect_service.api.admission import Admission
from ttmark.detect_service.api.body_route import body_route, body_size, json_answer
from ttmark.detect_service.api.cases import PUBLIC_KEY_PATH
from ttmark.detect_service.api.metrics_and_audit import DetectionMetrics, Journal
from ttmark.detect_service.api.problems import BODY_PROBLEMS, problems
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.detection_request import Detection, answered
from ttmark.detect_service.key_selection import check_askable
from ttmark.detect_service.manifests.manifest_examiner import ManifestExaminer, with_manifests_of
from ttmark.detect_service.model_reader.reads_along import ReadsAlong
from ttmark.detect_service.public import DOCUMENT_PATH, PAGE_PATH, PUBLIC_PATH, PublicTier
from ttmark.detect_service.spending import Spending
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.detection_words import public_message, with_manifests
from ttmark.shared.http.auth import GUEST, require
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.http.service_errors import (
    KeyNotFound,
    NoUsableKey,
    TooLarge,
    TooManyRequests,
    Unprocessable,
)
from ttmark.shared.languages.words import Words, preferred_words
from ttmark.shared.limits.public_allowance import words_of
from ttmark.shared.observability.tracing import request_id
from ttmark.shared.pages import page_router
from ttmark.shared.schemas.detection import (
    Basis,
    CombinedRequest,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
    Document,
    Message,
    Verdict,
)
from ttmark.shared.schemas.public import PublicAnswer, PublicQuestion, PublicVerdict, TextProvenance
from ttmark.shared.vault.audit_events import AuditSink

Caller = Annotated[Principal, Depends(require(Scope.DETECT_PUBLIC))]
# Answers leave at multiples of at least this after their request: what was done for them hardly ever shows.
_STEP_SECONDS = 0.1
_ESCAPED_BYTES = 12  # a character outside the first plane as JSON may write it
# A text without a verdict is an error.
_VERDICTS: dict[Verdict, PublicVerdict] = {
    "watermarked": "found",
    "not_detected": "not_found",
    "too_short": "too_short",
    "not_examined": "not_examined",
}


def public_limits(tier: PublicTier, others: HttpLimits) -> HttpLimits:
    """What a body may be: a text of the tier's length, however it is escaped."""
    return replace(
        others, max_body_bytes=_ESCAPED_BYTES * tier.characters + 256, max_json_depth=4, max_json_containers=4
    )


def public_routers(
    tier: PublicTier,
    backend: DetectionBackend,
    metrics: DetectionMetrics,
    audit: AuditSink,
    admission: Admission,
    examiner: ManifestExaminer,
    reader: ReadsAlong,
    *,
    signs_cases: bool,
) -> Sequence[APIRouter]:
    """The route, the document and the page."""
    asking = APIRouter(tags=["public"], route_class=body_route(Scope.DETECT_PUBLIC, admission.run_long))
    open_to_all = APIRouter(tags=["public"])
    allowance = tier.allowance
    spending = None if allowance is None else Spending(allowance.ledger, backend, allowance.refused)
    document = tier.described(
        PUBLIC_KEY_PATH if signs_cases else None, verifies_manifests=examiner.workers is not None
    )

    async def result_of(text: str, caller: Principal, request: Request, seconds: float) -> DetectionResult:
        whole: DetectionRequest = CombinedRequest(inputs=[Document(text=text)], fpr=tier.rate)
        parts = await examiner.part(whole, backend.label)
        question = parts.visible
        seeing = replace(caller, scopes=frozenset({Scope.DETECT_PUBLIC}))

        def finish(index: int, result: DetectionResult, _: Sequence[str]) -> DetectionResult:
            return with_manifests_of(index, result, parts, manifests)

        journal, identifier = Journal("combined", metrics, PUBLIC_PATH), request_id(request.scope)

        def render(response: DetectionResponse) -> DetectionResult:
            journal.close(caller, identifier, audit)
            return response.results[0]

        try:
            selection = check_askable(question, seeing, backend)
        except (KeyNotFound, Unprocessable):
            raise NoUsableKey("There is no key to ask at the moment.") from None
        counted, guest = None, request.scope["state"].get(GUEST)
        if allowance is not None:
            await allowance.take(caller, guest, words_of(text))
        manifests = await examiner.examine(parts.texts, caller.line)
        try:
            if spending is not None:
                run = partial(admission.run_long, request, body_size(request))
                asker = f"{caller.token_id} {guest or ''}"
                counted = await spending.ask(question, "public", seeing, selection, run, asker)
            blocks = await admission.admit("combined", question, caller, selection)
            detection = Detection(
                question,
                seeing,
                backend,
                identifier,
                journal,
                finish,
                counted,
                reader.state,
                selection=selection,
            )
            work = partial(admission.done, blocks, caller, request)
            result = await answered(detection, work, reader, render, spending, seconds)
        except TooLarge:  # its message says how much work it would have been or how many tokens may be
            raise TooLarge("The text is too long.", param="text") from None
        except TooManyRequests as error:
            raise TooManyRequests(
                "Too many texts are being checked.", retry_after=error.retry_after
            ) from None
        return result.model_copy(update={"asked_before": None, "reads_back": None})

    @asking.post(PUBLIC_PATH, response_model=PublicAnswer, responses=problems(*BODY_PROBLEMS))
    async def ask(body: PublicQuestion, caller: Caller, request: Request) -> Response:
        """Whether a text contains passages made here, at the deployment's one rate."""
        started = time.perf_counter()
        if len(body.text) > tier.characters:
            raise TooLarge(f"The text may have {tier.characters} characters.", param="text")
        seconds = reader.expected_seconds([len(body.text.encode())])
        step = max(_STEP_SECONDS, step_seconds([-(-len(body.text.encode()) // 3)], seconds))
        result = await result_of(body.text, caller, request, seconds)
        if result.verdict == "no_verdict":
            await leave_evenly(started, step)
            raise TooManyRequests(
                "This text, or one like it, has been asked about as often as it may be for now. "
                "Other texts can be asked about.",
                param="text",
                retry_after=None if result.error is None else result.error.retry_after,
            )
        answer = PublicAnswer(
            verdict=_VERDICTS[result.verdict],
            basis=result.basis if result.basis != Basis.WATERMARK else None,
            message=_said(result, tier.rate, preferred_words(request.headers.get("accept-language"))),
        )
        await leave_evenly(started, step)
        return json_answer(answer, headers={"Cache-Control": "no-store"})

    @open_to_all.get(DOCUMENT_PATH)
    async def provenance() -> TextProvenance:
        """How to ask this deployment whether a text is its own; for everybody, without a token."""
        return document

    return asking, open_to_all, page_router(PAGE_PATH, "check", "ttmark.detect_service.public")


def _said(result: DetectionResult, rate: float, words: Words) -> Message:
    said = public_message(result, rate, words)
    if not result.metadata:
        return said
    return with_manifests(said, result.metadata, alone=result.basis == Basis.METADATA, words=words)
