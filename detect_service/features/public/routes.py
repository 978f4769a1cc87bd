"""`POST /v1/detect/public`: one text, one decision; and the document that says how to ask."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from ttmark.detect_service.api.admission import Admission, HttpGate
from ttmark.detect_service.api.body_route import body_route, json_answer
from ttmark.detect_service.api.features import Application
from ttmark.detect_service.api.metrics import Journal
from ttmark.detect_service.api.problems import BODY_PROBLEMS, problems
from ttmark.detect_service.ask import ask
from ttmark.detect_service.features.manifests.manifest_examiner import with_manifests
from ttmark.detect_service.features.public.public_allowance import words_of
from ttmark.detect_service.features.public.tier import PAGE_PATH, PUBLIC_PATH, PublicTier
from ttmark.detect_service.features.spent.spending import Spending
from ttmark.detect_service.features.spent.spent_question import stage_of as counting
from ttmark.detect_service.question import Gate, Question
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.detection_words import public_message
from ttmark.shared.http.auth import GUEST, require
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.http.request_id import request_id
from ttmark.shared.http.service_errors import (
    KeyNotFound,
    NoUsableKey,
    TooLarge,
    TooManyRequests,
    Unprocessable,
)
from ttmark.shared.languages.words import Words, preferred_words
from ttmark.shared.pages import page_router
from ttmark.shared.schemas.detection.detect import (
    Basis,
    CombinedRequest,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
    Document,
    Verdict,
)
from ttmark.shared.schemas.detection.public import PublicAnswer, PublicQuestion, PublicVerdict, TextProvenance
from ttmark.shared.signpost import DOCUMENT_PATH

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


class PublicGate(HttpGate):
    """Counts words instead of documents, and answers at multiples of a longer step from the request on."""

    least_step = _STEP_SECONDS

    def __init__(
        self, admission: Admission, caller: Principal, request: Request, tier: PublicTier, text: str
    ) -> None:
        super().__init__(admission, caller, request)
        self.owner = caller.line
        self.began = time.perf_counter()
        self.guest = request.scope["state"].get(GUEST)
        self._allowance = tier.allowance
        self._text = text

    sized, readable = Gate.sized, Gate.readable  # a text is held to the tier's length alone

    async def take(self, _: DetectionRequest) -> None:
        if self._allowance is not None:
            await self._allowance.take(self._caller, self.guest, words_of(self._text))

    async def admit(self, mode: str, blocks: int) -> None:
        with _without_figures():
            await super().admit(mode, blocks)

    async def read(self, work: Callable[[], Any]) -> Any:
        with _without_figures():
            return await super().read(work)

    async def run(self, work: Callable[[], Any]) -> Any:
        with _without_figures():
            return await super().run(work)


@contextmanager
def _without_figures() -> Iterator[None]:
    """That something has to wait is said without how much of whose work there is."""
    try:
        yield
    except TooManyRequests as error:
        raise TooManyRequests("Too many texts are being checked.", retry_after=error.retry_after) from None


def public_routers(tier: PublicTier, document: TextProvenance, app: Application) -> Sequence[APIRouter]:
    asking = APIRouter(tags=["public"], route_class=body_route(Scope.DETECT_PUBLIC, app.admission.run_long))
    open_to_all = APIRouter(tags=["public"])
    counts = tier.allowance
    spending = None if counts is None else Spending(counts.ledger, counts.refused, name="public")
    means = app.means.with_stages([counting(spending)])

    @asking.post(PUBLIC_PATH, response_model=PublicAnswer, responses=problems(*BODY_PROBLEMS))
    async def ask_publicly(body: PublicQuestion, caller: Caller, request: Request) -> Response:
        """Whether a text contains passages made here, at the deployment's one rate."""
        if len(body.text) > tier.characters:
            raise TooLarge(f"The text may have {tier.characters} characters.", param="text")
        gate = PublicGate(app.admission, caller, request, tier, body.text)
        journal = Journal(CombinedRequest.mode, app.metrics, PUBLIC_PATH, request.scope["state"])
        words = preferred_words(request.headers.get("accept-language"))

        def render(response: DetectionResponse) -> Response | TooManyRequests:
            journal.close(caller, app.options.audit)
            return _answer(response.results[0], tier.rate, words)

        question = Question(
            CombinedRequest(inputs=[Document(text=body.text)], fpr=tier.rate),
            replace(caller, scopes=frozenset({Scope.DETECT_PUBLIC}), rates=(tier.rate,)),
            request_id(request.scope),
            journal,
            asker=f"{caller.token_id} {gate.guest or ''}",
        )
        try:
            answer = await ask(question, means, gate, render)
        except (KeyNotFound, Unprocessable):
            raise NoUsableKey("There is no key to ask at the moment.") from None
        except TooLarge:  # its message says how much work it would have been or how many tokens may be
            raise TooLarge("The text is too long.", param="text") from None
        if isinstance(answer, TooManyRequests):
            raise answer
        return answer

    @open_to_all.get(DOCUMENT_PATH)
    async def provenance() -> TextProvenance:
        """How to ask this deployment whether a text is its own; for everybody, without a token."""
        return document

    return asking, open_to_all, page_router(PAGE_PATH, "check", "ttmark.detect_service.features.public")


def _answer(result: DetectionResult, rate: float, words: Words) -> Response | TooManyRequests:
    if result.verdict == "no_verdict":
        return TooManyRequests(
            "This text, or one like it, has been asked about as often as it may be for now. "
            "Other texts can be asked about.",
            param="text",
            retry_after=None if result.error is None else result.error.retry_after,
        )
    result = result.model_copy(update={"asked_before": None, "reads_back": None})
    said = public_message(result, rate, words)
    if result.metadata:
        said = with_manifests(said, result.metadata, alone=result.basis == Basis.METADATA, words=words)
    answer = PublicAnswer(
        verdict=_VERDICTS[result.verdict],
        basis=result.basis if result.basis != Basis.WATERMARK else None,
        message=said,
    )
    return json_answer(answer, headers={"Cache-Control": "no-store"})
