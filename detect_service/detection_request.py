"""One detection request, from body to response."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, TypeVar, cast

from ttmark.detect_service.answer_timing import leave_evenly, step_seconds
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.conversation import ConversationExamination
from ttmark.detect_service.cost import estimated_tokens
from ttmark.detect_service.document_reader import sizes_to_read
from ttmark.detect_service.examination import Examination, Finish, Readings
from ttmark.detect_service.key_selection import KeySelection, select_keys
from ttmark.detect_service.model_reader.reads_along import ReadsAlong
from ttmark.detect_service.spending import Spending
from ttmark.detect_service.spent_document import Counted
from ttmark.detect_service.verdict import Finding
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import check_scope
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.schemas.detection import (
    CombinedRequest,
    CombinedResponse,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
)

T = TypeVar("T")


class DetectionObserver(Protocol):
    """Hears how a request goes."""

    def keys(self, selection: KeySelection) -> None:
        """The keys that are tried."""

    def document(self, result: DetectionResult, finding: Finding | None) -> None:
        """A document's result and the evidence for it; None where no key had a version to try."""


class Detection:
    """One request, in two steps: `look`, have read what is `unread`, and `answer`.

    The request's type chooses the detector. A document that fails inside, be it in `finish`, is
    `not_examined` and costs no other its result.

    Args:
        observer: is told every result, with the evidence whether the caller may see it or not.
        finish: completes each result.
        counted: the documents, where the caller sees verdicts alone; None: nothing of them is spent.
        reader: whether there is a language model that reads along, and it answers.
        words: of the language of the answers.
        selection: the keys of the request; None: not chosen yet.

    Raises:
        ServiceError: unknown key, missing tokenizer or scope.
    """

    def __init__(
        self,
        request: DetectionRequest,
        principal: Principal,
        backend: DetectionBackend,
        request_id: str,
        observer: DetectionObserver | None = None,
        finish: Finish | None = None,
        counted: Counted | None = None,
        reader: Literal["none", "down", "up"] = "none",
        words: Words = ENGLISH,
        selection: KeySelection | None = None,
    ) -> None:
        if request.evidence == "blocks":
            check_scope(principal, Scope.DETECT_EVIDENCE)
        self.reader = reader if isinstance(request, CombinedRequest) else "none"
        self.request = request
        self.principal = principal
        self.backend = backend
        self.counted = counted
        self._request_id = request_id
        self._observer = observer
        self._selection = selection or select_keys(
            request, principal.tenant, backend.keys, backend.tokenizers
        )
        more = backend, self._selection, principal.sees_evidence, self.reader, finish, counted, words
        self._examination: Examination
        if isinstance(request, CombinedRequest) and request.conversation:
            self._examination = ConversationExamination(request, *more)
        else:
            self._examination = Examination(request, *more)

    def look(self) -> list[str]:
        """Examines every document without a language model; the texts that one is to read.

        Raises:
            ServiceError: a document is too long, or there is more work than a request may ask for.
        """
        if self._observer is not None:
            self._observer.keys(self._selection)
        self._examination.look()
        return self._examination.unread

    def answer(self, readings: Readings) -> DetectionResponse:
        """The answer, with what a language model says of the texts that it was asked about."""
        outcomes = self._examination.outcomes(readings)
        if self._observer is not None:
            for result, finding in outcomes:
                self._observer.document(result, finding)
        is_combined = isinstance(self.request, CombinedRequest)
        kind: type[DetectionResponse] = CombinedResponse if is_combined else DetectionResponse
        return kind(
            results=[result for result, _ in outcomes],
            skipped_keys=list(self._selection.skipped),
            request_id=self._request_id,
        )


def detect(
    request: DetectionRequest,
    principal: Principal,
    backend: DetectionBackend,
    request_id: str,
    finish: Finish | None = None,
) -> DetectionResponse:
    """`Detection` without a language model.

    Raises:
        ServiceError: as there.
    """
    detection = Detection(request, principal, backend, request_id, finish=finish)
    detection.look()
    return detection.answer({})


async def answered(
    detection: Detection,
    run: Callable[[Callable[[], Any]], Awaitable[Any]],
    reader: ReadsAlong,
    render: Callable[[DetectionResponse], T],
    spending: Spending | None,
    seconds: float | None = None,
) -> T:
    """Both steps of a detection, and what `render` makes of its answer in the same place.

    Args:
        run: does a step where work is done.
        spending: what the documents were counted by.
        seconds: for the texts to be read in; None: the reader's time-out.
    """

    def at_once() -> T:
        detection.look()
        return render(detection.answer({}))

    if detection.reader != "up":
        answer = cast(T, await run(at_once))
    else:
        readings = await reader.read(await run(detection.look), seconds)
        answer = cast(T, await run(lambda: render(detection.answer(readings))))
    if spending is not None and detection.counted is not None:
        await spending.close(detection.principal, detection.counted)
    return answer


async def answered_evenly(
    detection: Detection,
    run: Callable[[Callable[[], Any]], Awaitable[Any]],
    reader: ReadsAlong,
    render: Callable[[DetectionResponse], T],
    spending: Spending | None,
) -> T:
    """`answered`, to callers who see verdicts alone at a time that does not tell what was done for them."""
    request, backend = detection.request, detection.backend
    if detection.principal.sees_evidence or not isinstance(request, CombinedRequest):
        return await answered(detection, run, reader, render, spending)
    began = time.perf_counter()
    seconds = reader.expected_seconds(sizes_to_read(request, backend.most_read_characters))
    answer = await answered(detection, run, reader, render, spending, seconds)
    tokens = [estimated_tokens(document, backend.max_document_tokens) for document in request.inputs]
    await leave_evenly(began, step_seconds(tokens, seconds))
    return answer
