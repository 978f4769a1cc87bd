"""What features add to the way of a verdict. The core imports none of them: it is told, and asks."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.key_selection import OtherKeys
from ttmark.detect_service.method import Method
from ttmark.detect_service.question import Gate, Question
from ttmark.detect_service.verdict import Best, Decision, DocumentFinding
from ttmark.shared.byte_reading import ByteReading, Content
from ttmark.shared.http.service_errors import Unprocessable
from ttmark.shared.keys.held_keys import ForeignKey, UnlockedKey
from ttmark.shared.schemas.detection.detect import DetectionRequest, DetectionResult, DocumentError
from ttmark.shared.watermark.null_replacement import Redrawn

Readings = Mapping[Content, ByteReading]
"""What a language model says of texts."""

StateOfReader = Literal["none", "down", "up"]
"""Whether there is a language model that reads along, and it answers."""


class Companion:
    """What a feature does about one question, at the places where it is asked; here nothing.

    What it raises ends the request, or leaves the document that it is asked about without a verdict.

    Attributes:
        examination: the `Examination` of the question, from `count` on.
    """

    examination: Any

    async def prepare(self, request: DetectionRequest) -> DetectionRequest:
        """The request as it is to be examined; no key is selected yet."""
        return request

    async def count(self) -> None:
        """Before anything is scored."""

    async def verify(self) -> None:
        """What is not looked at with keys, once the documents are counted."""

    def read(self, _: int) -> Sequence[DocumentReader] | DocumentError | DetectionResult | None:
        """A document's earlier readings, or its answer without reading it; None: neither."""
        return None

    def redrawn(self, _: int, __: int, ___: UnlockedKey) -> Redrawn | None:
        """Rows to leave out of a document in one way of reading, by its number and the way's."""
        return None

    def left_out(self, _: int, __: DocumentReader, ___: ForeignKey, ____: int) -> NDArray[np.bool_] | None:
        """Tokens [L] whose score under a foreign key is left out, by how many tokens it depends on."""
        return None

    def decide(self, _: int, __: DocumentFinding | None, decision: Decision) -> Decision:
        """What is decided of a document by our own keys."""
        return decision

    def tell(self, _: int, result: DetectionResult, __: Best | None, ___: Readings) -> DetectionResult:
        """A document's result before it is put in words; nothing is added to one with an error."""
        return result

    def finish(self, _: int, result: DetectionResult) -> DetectionResult:
        """A document's result with what was found beside marks, in the text as it was sent."""
        return result

    def seal(self, _: int, result: DetectionResult) -> DetectionResult:
        """A document's result when nothing else is added any more."""
        return result

    def record(self, _: int) -> Mapping[str, object]:
        """What else somebody needs, who has the keys, to recompute the answer about a document."""
        return {}

    async def close(self) -> None:
        """Every answer is made."""


class Reader(Protocol):
    """A language model that reads texts along."""

    @property
    def state(self) -> StateOfReader: ...

    def expected_seconds(self, line: str, sizes: Sequence[int]) -> float:
        """What reading texts of so many bytes takes, in the turn of `line`."""

    async def read(self, texts: Sequence[Content], line: str, seconds: float | None = None) -> Readings:
        """Readings of those of the texts that are read within so many seconds."""

    async def read_as(self, texts: Sequence[Content], line: str, origin: Mapping[str, Any]) -> Readings:
        """Readings of all texts, as of this origin. Raises Unprocessable, NotReady: not all are read."""


def not_read_so(why: object) -> Unprocessable:
    """The refusal of a question about texts that no language model reads as of their origin."""
    return Unprocessable(
        f"No language model reads these texts after a prompt and at a sampling here: {why}.", param="inputs"
    )


@dataclass(frozen=True, slots=True)
class VerdictStage:
    """What a feature adds to the way of a verdict: what is left out adds nothing.

    A companion joins the questions that ask for it in one of three ways, so that no other runs its code.

    Attributes:
        methods: answer requests of other kinds than the one question.
        conversation: makes the `Examination` of messages that are asked about together.
        other_keys: tries keys of other systems.
        joins: makes the companion of a question, with its request as it was sent.
        asked_by: joins where this field of the request is set.
        held: joins where a text has one of these characters.
        guards: joins where the caller sees verdicts alone.
    """

    name: str
    methods: Mapping[type[DetectionRequest], Method] = field(default_factory=dict)
    conversation: Callable[..., Any] | None = None
    reader: Reader | None = None
    other_keys: OtherKeys | None = None
    inserts: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    joins: Callable[[Question, DetectionRequest, Gate], Companion] | None = None
    asked_by: str = ""
    held: Sequence[str] = ()
    guards: bool = False
