"""What one request asks of each of its documents: read, detect, decide, report."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.cascade import (
    FIRST_SHARE,
    SECOND_SHARE,
    may_be_read,
    with_reading,
    without_reading,
)
from ttmark.detect_service.cost import check_cost, request_cost
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.documents.document_limits import read_document, readers_of
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.documents.documents_without_verdict import is_fault, not_examined
from ttmark.detect_service.documents.voices import voice_of
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.method import Look, Method
from ttmark.detect_service.question import OwnReader
from ttmark.detect_service.results import with_evidence
from ttmark.detect_service.stage import Companion, Readings, StateOfReader
from ttmark.detect_service.verdict import (
    Best,
    Decision,
    Detector,
    DocumentFinding,
    best_finding,
    best_reading,
    decide,
)
from ttmark.shared.byte_reading import Content
from ttmark.shared.detection_words import message
from ttmark.shared.http.service_errors import ServiceError
from ttmark.shared.keys.held_keys import ForeignKey, UnlockedKey
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.schemas.detection.detect import (
    CombinedRequest,
    DetectionRequest,
    DetectionResult,
    Document,
    DocumentError,
    ReaderState,
)
from ttmark.shared.watermark.interruption import pause
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.null_replacement import Redrawn

T = TypeVar("T")
Examined = tuple[DetectionResult, DocumentFinding | None]


@dataclass(slots=True)
class Examination:
    """A request whose keys are selected: `look`, have read what is `unread`, and get the `outcomes`.

    Attributes:
        shows_evidence: whether the caller may see more than the verdict.
        reader: whether there is a language model that answers; if not, the first step has the whole rate.
        own_reader: the caller's own language model; with it there is one step, at the whole rate.
        is_priced: its cost in blocks is known exactly, and is within the limit.
        reads_all: the request says how its documents were made: one step, at the whole rate, with the reader.
        documents: the ways each is read in that is looked at, by its number.
    """

    request: DetectionRequest
    method: Method
    backend: DetectionBackend
    selection: KeySelection
    readers: Sequence[Sequence[DocumentReader]]
    shows_evidence: bool
    reader: StateOfReader = "none"
    companions: Sequence[Companion] = ()
    words: Words = ENGLISH
    own_reader: OwnReader | None = None
    is_priced: bool = False
    reads_all: bool = False
    documents: dict[int, Sequence[DocumentReader]] = field(default_factory=dict)
    _first: dict[int, Best | None] = field(default_factory=dict)
    _to_be_read: set[int] = field(default_factory=set)
    _outcomes: dict[int, Examined] = field(default_factory=dict)

    @property
    def texts(self) -> list[DocumentReader]:
        """All documents in all ways of reading."""
        return [reader for readers in self.readers for reader in readers]

    def look(self) -> None:
        """Reads all documents and tries the keys on them, without a language model.

        A document that fails inside is `not_examined`, and so is one that is too long among others.

        Raises:
            ServiceError: the only document is too long, or there is more work than a request may ask for.
        """
        for index in range(len(self.request.inputs)):
            self.documents[index] = self._readers(index)
        if not self.is_priced:
            read = [reader for readers in self.documents.values() for reader in readers]
            self._check_cost(read)
        for index, readers in self.documents.items():
            if readers:
                self._unless_it_fails(index, self._look_at)

    def _check_cost(self, read: Sequence[DocumentReader]) -> None:
        """Holds the request to the limit of work once it is read. Raises TooMuchWork: it is more."""
        limit = self.backend.max_request_blocks
        if limit:
            exact = request_cost(
                self.request, self.method, read, self.selection, lambda one, key: one.token_ids(key).size
            )
            check_cost(exact, limit)

    @property
    def unread(self) -> list[Content]:
        """Texts that a language model is to read, each once."""
        documents = [self.documents[index] for index in sorted(self._to_be_read)]
        contents = [reader.content for readers in documents for reader in readers]
        return list(dict.fromkeys(content for content in contents if content))

    def outcomes(self, readings: Readings) -> list[Examined]:
        """The result of each document, with the evidence for it: None where no key had a version to try.

        Args:
            readings: of those of the `unread` texts that could be read.
        """
        for index in self._first:
            outcome = self._unless_it_fails(index, partial(self._outcome, readings))
            if outcome is not None:
                self._outcomes[index] = outcome
        return [self._outcomes[index] for index in range(len(self.request.inputs))]

    def _unless_it_fails(self, index: int, work: Callable[[int], T]) -> T | None:
        pause()
        try:
            return work(index)
        except BaseException as error:
            if not is_fault(error):
                raise
            self._outcomes[index] = not_examined(self.name(index), error, self.words, self.kind), None
        return None

    def _readers(self, index: int) -> Sequence[DocumentReader]:
        """The ways document number `index` is read in; none where it has its outcome without."""
        read = self._unless_it_fails(index, self._read)
        if isinstance(read, DocumentError):
            self._outcomes[index] = not_examined(self.name(index), read, self.words, self.kind), None
        elif isinstance(read, DetectionResult):
            self._outcomes[index] = read, None
        elif read is not None:
            return read
        return ()

    def _read(self, index: int) -> Sequence[DocumentReader] | DocumentError | DetectionResult:
        """Document number `index`, its tokens read under all keys; or why it is not, if there are others."""
        for companion in self.companions:
            read = companion.read(index)
            if read is not None:
                return read
        return read_document(self.request, index, self.readers[index], self.selection.keys, self.backend)

    def redrawn(self, index: int, place: int, key: UnlockedKey) -> Redrawn | None:
        """The rows of way of reading number `place` that are left out: one companion at most says some."""
        found = (companion.redrawn(index, place, key) for companion in self.companions)
        return next((rows for rows in found if rows is not None), None)

    def left_out(
        self, index: int, reader: DocumentReader, key: ForeignKey, row_tokens: int
    ) -> NDArray[np.bool_] | None:
        """Tokens [L] whose score under a foreign key is left out."""
        found = (companion.left_out(index, reader, key, row_tokens) for companion in self.companions)
        return next((rows for rows in found if rows is not None), None)

    def _look_at(self, index: int) -> None:
        if self.reads_all:
            self._first[index] = None
            self._to_be_read.add(index)
            return
        cascade, request = self.has_two_steps(self.documents[index]), self.request
        found = self._finding(index, share=FIRST_SHARE if cascade else 1.0, readings={})
        self._first[index] = found
        if (
            cascade
            and found is not None
            and isinstance(request, CombinedRequest)
            and may_be_read(found[1], request.fpr, request.reader)
        ):
            self._to_be_read.add(index)

    @property
    def _wants_a_reader(self) -> bool:
        return isinstance(self.request, CombinedRequest) and self.request.reader != "never"

    def has_two_steps(self, readers: Sequence[DocumentReader]) -> bool:
        """Known before any score is: whether the rate is shared with a second step."""
        return (
            self.reader == "up"
            and self._wants_a_reader
            and all(0 < len(reader.text) <= self.backend.most_read_characters for reader in readers)
        )

    def _finding(self, index: int, *, share: float, readings: Readings) -> Best | None:
        findings, readers = [], self.documents[index]
        others = self.selection.versions - len(self.selection.tries)
        for place, reader in enumerate(readers):
            detector = self.detector(reader, share, readings)
            redrawn = partial(self.redrawn, index, place)
            found = best_finding(reader.token_ids, self.selection.tries, detector, others, redrawn)
            if found is not None:
                findings.append(found)
        if len(readers) == 1:  # which has all the weight
            return (0, findings[0]) if findings else None
        return best_reading(findings, [one.weight for one in readers], self.request.fpr) if findings else None

    def detector(self, reader: DocumentReader, share: float, readings: Readings) -> Detector:
        limit = math.log10(self.request.fpr * reader.weight) - math.log10(max(1, self.selection.versions))
        reading = self.reading(reader, readings)
        look = Look(reader.document, limit, share, self.backend.draw_secret, reading)
        return self.method.detector(self.request, look)

    def reading(self, reader: DocumentReader, readings: Readings) -> Callable[[UnlockedKey], Reading | None]:
        """What a language model says of the tokens of a document, as a key's profile reads it."""
        if self.own_reader is not None:
            return partial(self.own_reader, reader)
        found = readings.get(reader.content)
        return lambda key: None if found is None else reader.reading(key, found)

    def _both_steps(self, index: int, readings: Readings) -> tuple[Best | None, ReaderState]:
        found, readers = self._first[index], self.documents[index]
        if self.reads_all:
            is_read = all(reader.content in readings for reader in readers)  # an empty text is not
            return self._finding(index, share=1.0, readings=readings), "read" if is_read else "none"
        if found is None or not self.has_two_steps(readers):
            is_missed = self.reader == "down" and self._wants_a_reader
            return found, "read" if self.own_reader else "down" if is_missed else "none"
        best, first = found
        if index not in self._to_be_read:
            return (best, without_reading(first)), "not_needed"
        if not all(reader.content in readings for reader in readers):
            return (best, without_reading(first)), "down"
        second = self._finding(index, share=SECOND_SHARE, readings=readings)
        if second is None:
            return found, "none"
        both = with_reading(first, second[1])
        return (second[0] if both.evidence is second[1].evidence else best, both), "read"

    def _outcome(self, readings: Readings, index: int) -> Examined:
        request, selection, readers = self.request, self.selection, self.documents[index]
        found, reader_state = self._both_steps(index, readings)
        best, finding = (0, None) if found is None else found
        decision = decide(finding, request.fpr)
        for companion in self.companions:
            decision = companion.decide(index, finding, decision)
        result = self._verdict(index, readers, finding, decision)
        if finding is not None and self.shows_evidence:
            result = with_evidence(
                result,
                finding,
                readers[best],
                request.fpr,
                block_beta=self.method.beta(request) if request.evidence == "blocks" else None,
                reading=self.reading(readers[best], readings if reader_state == "read" else {}),
                reader_state=reader_state,
            )
        if selection.other_keys is not None:
            result = selection.other_keys.added(self, index, result, decision)
        return self._told(index, result, found, readings), finding

    def _told(
        self, index: int, result: DetectionResult, found: Best | None, readings: Readings
    ) -> DetectionResult:
        for companion in self.companions:
            result = companion.tell(index, result, found, readings)
            if result.error is not None:
                return result
        if result.verdict == "watermarked":
            voice = voice_of(self.request.inputs[index], self._are_marked)
            result = result.model_copy(update={"voice": voice})
        result = result.model_copy(update={"message": message(result, self.request.fpr, self.words)})
        for companion in self.companions:
            result = companion.finish(index, result)
        for companion in self.companions:
            result = companion.seal(index, result)
        return result

    def _are_marked(self, texts: list[str]) -> list[bool] | None:
        """Whether parts of a text carry a mark: asked about alone, at the same rate, and read by no model.

        None: the caller is told what the text is, and not what was found where, or it is too much work.
        """
        if not self.shows_evidence:
            return None
        parts = [Document(text=text) for text in texts]
        request = self.request.model_copy(update={"inputs": parts})
        readers = readers_of(request, self.backend)
        alone = type(self)(request, self.method, self.backend, self.selection, readers, shows_evidence=False)
        try:
            alone.look()
        except ServiceError:  # the parts are a little more work than the whole
            return None
        return [result.verdict == "watermarked" for result, _ in alone.outcomes({})]

    def _verdict(
        self,
        index: int,
        readers: Sequence[DocumentReader],
        finding: DocumentFinding | None,
        decision: Decision,
    ) -> DetectionResult:
        # Which key came closest is evidence, which counts its tokens; everybody is told those of the first.
        first = (self.selection.own or self.selection.keys)[0]
        return self.kind(
            id=self.name(index),
            verdict=decision.verdict,
            tokens=len(readers[0].token_ids(first)),
            hypotheses=finding.hypotheses * sum(len(one.names) for one in readers) if finding else 0,
            tokens_needed=decision.tokens_needed,
            tokens_typical=decision.tokens_typical,
            normalization=readers[0].normalization(self.request.normalize),
        )

    @property
    def kind(self) -> type[DetectionResult]:
        return self.method.result

    def name(self, index: int) -> str:
        """What document number `index` is called in the answer."""
        name = self.request.inputs[index].id
        return str(index) if name is None else name
