"""Several messages as one question: examined together, and answered with one result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.cascade import conversation_may_be_read
from ttmark.detect_service.conversation_evidence import (
    NAME,
    ConversationResults,
    GrownEvidence,
    Message,
    grown_evidence,
)
from ttmark.detect_service.cost import check_cost_of
from ttmark.detect_service.document_reader import read_document
from ttmark.detect_service.examination import Finish, name_of
from ttmark.detect_service.failures import is_fault, no_verdict, not_examined, refused
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.spent_document import Counted
from ttmark.detect_service.verdict import Finding
from ttmark.shared.byte_reading import ByteReading
from ttmark.shared.http.service_errors import Unprocessable
from ttmark.shared.languages.words import ENGLISH, Words
from ttmark.shared.schemas.detection import CombinedRequest, DetectionResult, DocumentError
from ttmark.shared.schemas.detection_combined import CombinedResult, ReaderState
from ttmark.shared.watermark.pauses import pause


@dataclass(slots=True)
class ConversationExamination:
    """In place of an `Examination` where the documents are messages; it has one outcome.

    A message that is over a limit, fails, or gets no verdict is left out: what the others say counts, and
    where that is no finding the conversation has no verdict either.

    Attributes:
        shows_evidence, reader, finish, counted, words: as there; `finish` adds nothing.

    Raises:
        Unprocessable: none of the keys is of this system, or can be detected with.
    """

    request: CombinedRequest
    backend: DetectionBackend
    selection: KeySelection
    shows_evidence: bool
    reader: Literal["none", "down", "up"] = "none"
    finish: Finish | None = None
    counted: Counted | None = None
    words: Words = ENGLISH
    _messages: list[Message] = field(default_factory=list)
    _left_out: dict[int, DetectionResult] = field(default_factory=dict)
    _first: GrownEvidence | None = None
    _failed: DetectionResult | None = None
    _to_be_read: bool = False

    def __post_init__(self) -> None:
        if not self.selection.tries:
            raise Unprocessable("A conversation is asked about with keys of this system.", param="keys")

    def look(self) -> None:
        """Reads all messages and tries the keys on them, without a language model.

        Raises:
            ServiceError: the only message is too long, or there is more work than a request may ask for.
        """
        for index in range(len(self.request.inputs)):
            pause()
            self._messages.append(self._message(index))
        readers = [reader for one in self._messages for reader in one.readers]
        check_cost_of(self.request, readers, self.selection, self.backend)
        try:
            self._first = grown_evidence(self._messages, self.selection.own, {})
        except BaseException as error:
            if not is_fault(error):
                raise
            self._failed = not_examined(NAME, error, self.words, CombinedResult)
            return
        self._to_be_read = self._has_two_steps and conversation_may_be_read(
            self._first.log10_p, self.request.fpr, self.request.reader
        )

    @property
    def unread(self) -> list[str]:
        """Texts that a language model is to read, each once."""
        return self._readable if self._to_be_read else []

    def outcomes(self, readings: Mapping[str, ByteReading]) -> list[tuple[DetectionResult, Finding | None]]:
        """The one result.

        Args:
            readings: of those of the `unread` texts that could be read.
        """
        result = self._failed
        if self._first is not None:
            try:
                result = self._made(self._first, readings)
            except BaseException as error:
                if not is_fault(error):
                    raise
                result = not_examined(NAME, error, self.words, CombinedResult)
        return [] if result is None else [(result, None)]

    def _made(self, first: GrownEvidence, readings: Mapping[str, ByteReading]) -> DetectionResult:
        is_missed = self.reader == "down" and self.request.reader != "never"
        state: ReaderState = "down" if is_missed else "none"
        evidence = first
        if self._has_two_steps:
            second = None
            if self._to_be_read and all(text in readings for text in self._readable):
                second = grown_evidence(self._messages, self.selection.own, readings)
            state = "read" if second else "down" if self._to_be_read else "not_needed"
            evidence = first.with_reading(second)
        made = ConversationResults(self.request, self.selection, self._messages, self._left_out, self.words)
        if self.counted is not None:
            self.counted.reasons.extend(made.reasons(evidence))
        return made.result(evidence, state if self.shows_evidence else None)

    @property
    def _readable(self) -> list[str]:
        """Texts that are not too long for a reader, each once."""
        most = self.backend.most_read_characters
        texts = [reader.text for one in self._messages for reader in one.readers]
        return [text for text in dict.fromkeys(texts) if 0 < len(text) <= most]

    @property
    def _has_two_steps(self) -> bool:
        """Known before any score is: whether the rate is shared with a second step."""
        return self.reader == "up" and self.request.reader != "never" and bool(self._readable)

    def _message(self, index: int) -> Message:
        name = name_of(self.request, index)
        asked = self.counted.documents[index] if self.counted else None
        try:
            if self.finish is not None:  # raises what came up when manifests were set apart
                empty = CombinedResult(id=name, verdict="not_detected", tokens=0, hypotheses=0)
                self.finish(index, empty, self.selection.skipped)
            if asked is None:
                read = read_document(self.request, index, self.selection.keys, self.backend)
            elif asked.standing.refusal is not None:
                self._left_out[index] = no_verdict(
                    name, asked.standing.refusal, asked.rule, self.words, CombinedResult
                )
                return Message()
            elif asked.failure is not None:
                raise asked.failure
            else:
                read = asked.rows.readers if asked.too_long is None else asked.too_long
        except BaseException as error:
            if not is_fault(error):
                raise
            self._left_out[index] = not_examined(name, error, self.words, CombinedResult)
            return Message()
        if isinstance(read, DocumentError):
            self._left_out[index] = refused(name, read, self.words, CombinedResult)
            return Message()
        return Message(read, asked)
