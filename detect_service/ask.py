"""One question to the detector, from what may be asked to what is answered: the only place where texts are
asked under keys.

Routes, the public route, jobs, rows of a bulk file, the library and conformance runs come in by a `Gate` of
their own, which says what a question costs them and where the work is done. Features declare what they add
in a `VerdictStage`; those that a question does not ask for are not run.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from ttmark.detect_service.answer_timing import leave_evenly, step_seconds
from ttmark.detect_service.cost import estimated_tokens, request_cost
from ttmark.detect_service.detectors import LIKELIHOOD
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.documents.document_limits import readers_of, sizes_to_read
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.examination import Examination
from ttmark.detect_service.key_selection import KeySelection, check_askable, permitted
from ttmark.detect_service.method import Method
from ttmark.detect_service.question import Gate, Question
from ttmark.detect_service.stage import Companion, Reader, Readings, VerdictStage, not_read_so
from ttmark.shared.access.scopes import Scope
from ttmark.shared.byte_reading import Content
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.service_errors import Unprocessable
from ttmark.shared.schemas.detection.detect import CombinedRequest, DetectionRequest, DetectionResponse
from ttmark.shared.schemas.generation.origin import Origin

T = TypeVar("T")
_OURS = VerdictStage("likelihood", {CombinedRequest: LIKELIHOOD})


@dataclass(frozen=True, slots=True)
class Means:
    """What a process answers with: keys, tokenizers and limits, and what features add."""

    backend: DetectionBackend
    stages: Sequence[VerdictStage] = (_OURS,)

    def with_stages(self, stages: Iterable[VerdictStage]) -> "Means":
        """These stages as well, each in place of one of the same name."""
        of_name = {stage.name: stage for stage in (*self.stages, *stages)}
        inserts = {key: one for stage in of_name.values() for key, one in stage.inserts.items()}
        return Means(replace(self.backend, inserts=inserts), tuple(of_name.values()))

    @property
    def reader(self) -> Reader | None:
        return next((stage.reader for stage in self.stages if stage.reader is not None), None)

    def method_of(self, request: DetectionRequest) -> Method:
        """What answers requests of this kind. Raises Unprocessable: nothing does."""
        found = [stage.methods.get(type(request)) for stage in self.stages]
        return _first(found, f"Nothing here answers by the mode {request.mode}.", "mode")

    def companions(self, question: Question, sent: DetectionRequest, gate: Gate) -> list[Companion]:
        """Those of features that join this question; `sent` is its request as it came."""
        texts = [document.text for document in sent.inputs if document.text]
        return [
            stage.joins(question, sent, gate)
            for stage in self.stages
            if stage.joins is not None
            and (
                (stage.guards and not question.caller.sees_evidence)
                or (stage.asked_by and getattr(sent, stage.asked_by))
                or any(characters in text for characters in stage.held for text in texts)
            )
        ]

    def examination(
        self,
        question: Question,
        request: DetectionRequest,
        selection: KeySelection,
        readers: Sequence[Sequence[DocumentReader]],
        companions: Sequence[Companion],
    ) -> Examination:
        """Of what is left of the request. Raises Unprocessable: it asks for what no feature here adds."""
        make: Callable[..., Examination] = Examination
        reader = self.reader
        if not isinstance(request, CombinedRequest) or question.own_reader is not None:
            reader = None
        if isinstance(request, CombinedRequest) and request.conversation:
            kinds = [stage.conversation for stage in self.stages]
            make = _first(kinds, "Nothing here answers about a conversation.", "conversation")
        if selection.foreign:
            tries = [stage.other_keys for stage in self.stages]
            other_keys = _first(tries, "Nothing here looks for marks of other systems.", "keys")
            selection = replace(selection, other_keys=other_keys)
        examination = make(
            request,
            self.method_of(request),
            self.backend,
            selection,
            readers,
            question.caller.sees_evidence,
            reader="none" if reader is None else reader.state,
            companions=companions,
            words=question.words,
            own_reader=question.own_reader,
        )
        for companion in companions:
            companion.examination = examination
        return examination


def _first(found: Iterable[T | None], why_none: str, param: str) -> T:
    """What a feature adds. Raises Unprocessable: none does."""
    for one in found:
        if one is not None:
            return one
    raise Unprocessable(why_none, param=param)


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
    if reads_all:
        check_scope(caller, Scope.DETECT_EVIDENCE)
    request = await gate.sized(permitted(question.request, caller))
    companions = means.companions(question, request, gate)
    for companion in companions:
        request = await companion.prepare(request)
    request = await gate.readable(request)
    selection = check_askable(request, caller, backend)
    await gate.take(request)
    readers = await gate.read(partial(readers_of, request, backend))
    examination = means.examination(question, request, selection, readers, companions)
    examination.reads_all = reads_all
    for companion in companions:
        await companion.count()
    for companion in companions:
        await companion.verify()
    texts, most = examination.texts, backend.max_document_tokens
    estimated = partial(estimated_tokens, most=most)
    cost = request_cost(
        request, examination.method, texts, examination.selection, lambda text, _: estimated(text)
    )
    await gate.admit(request.mode, cost)

    began = time.perf_counter() if gate.began is None else gate.began
    # The estimate of token ids is exact.
    examination.is_priced = gate.checks_cost and all(document.text is None for document in request.inputs)
    evenly = gate.leaves_evenly and not caller.sees_evidence and isinstance(request, CombinedRequest)
    steps = _Steps(question, examination, render)
    seconds = None  # for texts to be read in
    if means.reader is not None and evenly:
        sizes = sizes_to_read(texts, backend.most_read_characters)
        seconds = means.reader.expected_seconds(caller.line, sizes)
    if reads_all or examination.reader == "up":
        unread = await gate.run(steps.look)
        readings = await _readings(means.reader, unread, request, caller.line, seconds)
        answer: T = await gate.run(partial(steps.answer, readings))
    else:
        answer = await gate.run(steps.whole)
    for companion in companions:
        await companion.close()
    if evenly:
        tokens = list(map(estimated, texts))
        await leave_evenly(began, max(gate.least_step, step_seconds(tokens, seconds or 0.0)))
    return answer


async def _readings(
    reader: Reader | None,
    texts: Sequence[Content],
    request: DetectionRequest,
    line: str,
    seconds: float | None,
) -> Readings:
    """Readings of the texts: of all, or Unprocessable or NotReady, where it says how they were made."""
    if isinstance(request, CombinedRequest) and request.has_origin:
        if reader is None:
            raise not_read_so("there is no reader")
        return await reader.read_as(texts, line, request.origin)
    return {} if reader is None else await reader.read(texts, line, seconds)


def ask_here(question: Question, means: Means) -> DetectionResponse:
    """`ask` in this thread, at once, without limits or a model that reads along. Raises as `ask`."""
    asking = ask(question, means, Gate(), lambda response: response)
    try:
        asking.send(None)
    except StopIteration as answered:
        response: DetectionResponse = answered.value
        return response
    asking.close()
    raise RuntimeError("a question that is asked at once waits for something")


@dataclass(frozen=True, slots=True)
class _Steps(Generic[T]):
    """The work on a question, in one step or two."""

    question: Question
    examination: Examination
    render: Callable[[DetectionResponse], T]

    def look(self) -> list[Content]:
        """Looks at every document, as `Examination.look` does; the texts that a language model is to read."""
        if self.question.observer is not None:
            self.question.observer.keys(self.examination.selection)
        self.examination.look()
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
        self.look()
        return self.answer({})
