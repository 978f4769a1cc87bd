"""One question to the detector, from what may be asked to what is answered: the only place where texts are
asked under keys.

Routes, the public route, jobs, rows of a bulk file, the library and conformance runs come in by a `Gate` of
their own, which says what a question costs them and where the work is done.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from ttmark.detect_service.answer_timing import leave_evenly, step_seconds
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.cost import estimated_cost, estimated_tokens
from ttmark.detect_service.detectors import method_of
from ttmark.detect_service.documents.document_limits import readers_of, sizes_to_read
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.examination import Examination, Finish, OwnReader, Readings
from ttmark.detect_service.features.cases.case_writer import Cases
from ttmark.detect_service.features.conversation.conversation import ConversationExamination
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.manifests.manifest_stripping import parted
from ttmark.detect_service.features.reader.reads_along import ReadsAlong, readings_of
from ttmark.detect_service.features.spent.spending import Spending
from ttmark.detect_service.features.spent.spent_document import Counted
from ttmark.detect_service.features.spent.spent_examination import SpentExamination
from ttmark.detect_service.key_selection import KeySelection, check_askable, permitted
from ttmark.detect_service.verdict import Finding
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.byte_reading import Content
from ttmark.shared.http.auth import check_scope
from ttmark.shared.labels import Label
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.manifests.wrapper import may_hold_wrappers
from ttmark.shared.schemas.detection import (
    CombinedRequest,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
)
from ttmark.shared.schemas.origin import Origin
from ttmark.shared.signed_files.signed_file import CaseKey

T = TypeVar("T")


class DetectionObserver(Protocol):
    """Hears how a question goes."""

    def keys(self, selection: KeySelection) -> None:
        """The keys that are tried."""

    def document(self, result: DetectionResult, finding: Finding | None) -> None:
        """A document's result and the evidence for it; None where no key had a version to try."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and by whom.

    Attributes:
        identifier: of the request, which the answer names.
        observer: is told every result, with the evidence whether the caller may see it or not.
        words: the sentences of the answer's language.
        asker: who asks, if each asker of a token has a limit of their own.
        own_reader: the caller's own language model; with it there is one step, at the whole rate.
    """

    request: DetectionRequest
    caller: Principal
    identifier: str = ""
    observer: DetectionObserver | None = None
    words: Words = ENGLISH
    asker: str = ""
    own_reader: OwnReader | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """What a process answers with.

    Attributes:
        manifests: verifies those in texts.
        reader: a language model that reads texts along; None: there is none.
        spending: counts the documents of callers who see verdicts alone; None: nothing does.
        case_key: signs cases; None: there are none.
    """

    backend: DetectionBackend
    manifests: ManifestExaminer = field(default_factory=lambda: ManifestExaminer(None))
    reader: ReadsAlong | None = None
    spending: Spending | None = None
    case_key: CaseKey | None = None


class Gate:
    """What stands between a question and the work on it: here nothing, and the work is done at once.

    Attributes:
        owner: in whose turn manifests are verified; None: in the background, however long that takes.
        checks_cost: whether what an examination costs is held to the limit before it is admitted.
        leaves_evenly: whether answers without evidence leave at times that tell nothing.
        began: since when they are waited for (`time.perf_counter`); None: since the work was admitted.
        least_step: seconds; answers leave at multiples of at least that.
    """

    owner: str | None = None
    checks_cost = False
    leaves_evenly = False
    began: float | None = None
    least_step = 0.0

    async def sized(self, request: DetectionRequest) -> DetectionRequest:
        """The request without the documents that their size alone refuses."""
        return request

    async def readable(self, request: DetectionRequest) -> DetectionRequest:
        """The request without the documents that have too many tokens."""
        return request

    async def take(self, _: DetectionRequest) -> None:
        """Takes the documents from what the caller may ask."""

    async def admit(self, mode: str, blocks: int) -> None:
        """Takes the cost of the examination, in hashed blocks, from the tenant's budget."""

    async def read(self, work: Callable[[], Any]) -> Any:
        """Does what takes time in proportion to the texts."""
        return work()

    async def run(self, work: Callable[[], Any]) -> Any:
        """Does a step of what was admitted."""
        return work()


async def ask(
    question: Question,
    means: Means,
    gate: Gate,
    render: Callable[[DetectionResponse], T],
) -> T:
    """What `render` makes of the answer, in the place where the work is done.

    A document that fails inside is `not_examined` and costs no other its result.

    Raises:
        ServiceError: the question may not be asked, is more work than one may be, or has to wait.
    """
    caller, backend = question.caller, means.backend
    reads_all = any(getattr(question.request, name, None) is not None for name in Origin.model_fields)
    shows_evidence = caller.sees_evidence
    if reads_all:
        check_scope(caller, Scope.DETECT_EVIDENCE)
    sent = await gate.sized(permitted(question.request, caller))
    parts = None
    if _carries_more_than_words(sent, backend.label):
        parts = await gate.read(partial(parted, sent, backend.label))
    request = await gate.readable(sent if parts is None else parts.visible)
    selection = check_askable(request, caller, backend)
    await gate.take(request)
    of_documents = await gate.read(partial(readers_of, request, backend))
    readers = [reader for each in of_documents for reader in each]
    spending, counted = None if shows_evidence else means.spending, None
    if spending is not None:
        counted = await spending.ask(request, of_documents, caller, selection, gate.read, question.asker)
    finishers: list[Finish] = []
    if parts is not None:
        finishers.append(await means.manifests.verified(parts, gate.owner, question.words))
    if sent.case and means.case_key is not None:
        finishers.append(Cases(sent, means.case_key, question.identifier, counted).added)
    await gate.admit(request.mode, estimated_cost(request, readers, selection, backend.max_document_tokens))

    began = time.perf_counter() if gate.began is None else gate.began
    examination = _examination(
        question, request, of_documents, means, selection, shows_evidence, finishers, counted
    )
    examination.reads_all = reads_all
    # The estimate of token ids is exact.
    examination.is_priced = gate.checks_cost and all(one.text is None for one in request.inputs)
    steps = _Steps(question, examination, render)
    seconds = None  # for texts to be read in
    evenly = gate.leaves_evenly and not shows_evidence and isinstance(request, CombinedRequest)
    if means.reader is not None and evenly:
        sizes = sizes_to_read(readers, backend.most_read_characters)
        seconds = means.reader.expected_seconds(caller.line, sizes)
    if not reads_all and (means.reader is None or examination.reader != "up"):
        answer: T = await gate.run(steps.whole)
    else:
        readings = await readings_of(means.reader, await gate.run(steps.look), request, caller.line, seconds)
        answer = await gate.run(partial(steps.answer, readings))
    if spending is not None and counted is not None:
        await spending.close(caller, counted, question.asker)
    if evenly:
        tokens = [estimated_tokens(reader, backend.max_document_tokens) for reader in readers]
        await leave_evenly(began, max(gate.least_step, step_seconds(tokens, seconds or 0.0)))
    return answer


def ask_here(question: Question, means: Means) -> DetectionResponse:
    """`ask` in this thread, at once: where there is no limit to wait for, and no model to read along.

    Raises:
        ServiceError: as there.
    """
    asking = ask(question, means, Gate(), lambda response: response)
    try:
        asking.send(None)
    except StopIteration as answered:
        response: DetectionResponse = answered.value
        return response
    asking.close()
    raise RuntimeError("a question that is asked at once waits for something")


def _carries_more_than_words(request: DetectionRequest, label: Label | None) -> bool:
    """Whether a text may hold manifests, none of which is in ASCII, or a label."""
    texts = [document.text for document in request.inputs if document.text]
    if label is not None:
        return bool(texts)
    return any(not text.isascii() and may_hold_wrappers(text) for text in texts)


def _examination(
    question: Question,
    request: DetectionRequest,
    readers: Sequence[Sequence[DocumentReader]],
    means: Means,
    selection: KeySelection,
    shows_evidence: bool,
    finishers: Sequence[Finish],
    counted: Counted | None,
) -> Examination:
    """Of what is left of the request, with what was found out about it."""

    def finish(index: int, result: DetectionResult, skipped_keys: Sequence[str]) -> DetectionResult:
        for finisher in finishers:
            result = finisher(index, result, skipped_keys)
        return result

    may_be_read = isinstance(request, CombinedRequest) and question.own_reader is None
    kind: Callable[..., Examination] = Examination
    if isinstance(request, CombinedRequest) and request.conversation:
        kind = partial(ConversationExamination, counted=counted)
    elif counted is not None:
        kind = partial(SpentExamination, counted=counted)
    return kind(
        request,
        method_of(request),
        means.backend,
        selection,
        readers,
        shows_evidence,
        reader="none" if means.reader is None or not may_be_read else means.reader.state,
        finish=finish if finishers else None,
        words=question.words,
        own_reader=question.own_reader,
    )


@dataclass(frozen=True, slots=True)
class _Steps(Generic[T]):
    """The work on a question, in one step or two."""

    question: Question
    examination: Examination
    render: Callable[[DetectionResponse], T]

    def look(self) -> list[Content]:
        """Examines every document without a language model; the texts that one is to read.

        Raises:
            ServiceError: a document is too long, or there is more work than a request may ask for.
        """
        self._look()
        return self.examination.unread

    def answer(self, readings: Readings) -> T:
        """The answer, with what a language model says of the texts that it was asked about."""
        outcomes = self.examination.outcomes(readings)
        if self.question.observer is not None:
            for result, finding in outcomes:
                self.question.observer.document(result, finding)
        response = self.examination.method.response(
            results=[result for result, _ in outcomes],
            skipped_keys=list(self.examination.selection.skipped),
            request_id=self.question.identifier,
        )
        return self.render(response)

    def whole(self) -> T:
        self._look()
        return self.answer({})

    def _look(self) -> None:
        if self.question.observer is not None:
            self.question.observer.keys(self.examination.selection)
        self.examination.look()
