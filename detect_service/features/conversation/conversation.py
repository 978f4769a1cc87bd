"""Several messages as one question: examined together, and answered with one result."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.cascade import FIRST_SHARE, SECOND_SHARE, conversation_may_be_read
from ttmark.detect_service.documents.document_reader import WEIGHTS, DocumentReader
from ttmark.detect_service.documents.documents_without_verdict import is_fault, not_examined
from ttmark.detect_service.examination import Examination
from ttmark.detect_service.features.conversation.conversation_evidence import (
    ConversationEvidence,
    detect_conversation,
)
from ttmark.detect_service.features.conversation.conversation_words import conversation_message
from ttmark.detect_service.features.spent.refusals import no_verdict
from ttmark.detect_service.features.spent.spent_document import UNSEEN_SHARE, Counted, SpentDocument
from ttmark.detect_service.features.spent.spent_question import SpentQuestion
from ttmark.detect_service.results import is_weak, shown_key
from ttmark.detect_service.verdict import DocumentFinding, Reach, typical_tokens, without_finding
from ttmark.shared.byte_reading import ByteReading, Content
from ttmark.shared.http.service_errors import Unprocessable
from ttmark.shared.keys.held_keys import UnlockedKey, UnlockedVersion
from ttmark.shared.limits.counting_filter import Refusal
from ttmark.shared.schemas.detection.detect import (
    CombinedRequest,
    CombinedResult,
    ConversationMessage,
    DetectedKey,
    DetectionResult,
    DocumentError,
    ReaderState,
    ReadingName,
)
from ttmark.shared.watermark.likelihood.forward_backward import log10_mean

Floats = NDArray[np.float64]
Try = tuple[UnlockedKey, UnlockedVersion, int]
"""A key, its version, and a number in the version's pool."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadMessage:
    """A message that counts, or one that is left out: without readers.

    Attributes:
        readers: the ways it is read in, as it was sent first.
        asked: of a caller who sees verdicts alone: what of it is spent.
    """

    readers: Sequence[DocumentReader] = ()
    asked: SpentDocument | None = None

    def place(self, name: ReadingName) -> int:
        """Which reader reads it so; the first where it has no such reading."""
        return next((place for place, one in enumerate(self.readers) if name in one.names), 0)


@dataclass(frozen=True, slots=True, eq=False)
class GrownEvidence:
    """Of a conversation.

    Attributes:
        grown: log10 of E of the messages up to each [messages]: a mean over the readings by weight, of each
            the product over messages of the mean over keys.
        of_keys: log10 E of each message under each key, in the way that says most [messages, tries].
    """

    grown: Floats
    of_keys: Floats

    @property
    def log10_e(self) -> float:
        """Of all messages."""
        return float(self.grown[-1])

    @property
    def log10_p(self) -> float:
        """Of the best moment to stop: without the mark E ever exceeds x with a chance of at most 1 / x."""
        return -max(0.0, float(self.grown.max()))

    def with_reading(self, read: "GrownEvidence | None") -> "GrownEvidence":
        """By shares of both: with a reader and without; None: it was not asked, and counts as 0."""
        first = self.grown + math.log10(FIRST_SHARE)
        if read is None:
            return GrownEvidence(first, self.of_keys)
        second = read.grown + math.log10(SECOND_SHARE)
        both = np.logaddexp(first * math.log(10), second * math.log(10)) / math.log(10)
        return GrownEvidence(both, read.of_keys if second[-1] >= first[-1] else self.of_keys)


def grown_evidence(
    messages: Sequence[ReadMessage], keys: Sequence[UnlockedKey], readings: Mapping[Content, ByteReading]
) -> GrownEvidence:
    """The evidence of messages in order.

    All messages are read in one way, then in the next, those with one text in both alike. E is the mean by
    weight, so that no way has to be chosen by its scores.

    Args:
        readings: what a language model says of texts; one that has none is read without.

    Raises:
        ValueError: a token that is none.
    """
    ways: dict[tuple[int, ...], float] = {}  # what each message is read by, and the weight
    for name, weight in WEIGHTS.items():
        way = tuple(one.place(name) for one in messages)
        ways[way] = ways.get(way, 0.0) + weight
    found = [ConversationEvidence(_of_keys(messages, keys, readings, way)) for way in ways]
    grown = [one.grown for one in found]
    best = int(np.argmax([one[-1] for one in grown]))
    return GrownEvidence(log10_mean(np.array(grown), weights=list(ways.values())), found[best].of_keys)


def _of_keys(
    messages: Sequence[ReadMessage],
    keys: Sequence[UnlockedKey],
    readings: Mapping[Content, ByteReading],
    way: Sequence[int],
) -> Floats:
    """log10 E of each message under each try [messages, tries], each read by its reader number so and so."""
    parts = []
    for key in keys:
        prf_keys = [prf_key for version in key.detectable for prf_key in version.prf_keys]
        if not prf_keys:
            continue
        tokens, read, silent = [], [], []
        for message, own in zip(messages, way, strict=True):
            reader = message.readers[own] if message.readers else None
            tokens.append(np.zeros(0, dtype=np.int64) if reader is None else reader.token_ids(key))
            found = None if reader is None else readings.get(reader.content)
            read.append(None if reader is None or found is None else reader.reading(key, found))
            redrawn = None if message.asked is None or reader is None else message.asked.redrawn(key)[own]
            silent.append(None if redrawn is None else redrawn.rows)
        watermark = key.profile.watermark()
        evidence = detect_conversation(watermark, prf_keys, tokens, readings=read, silent=silent)
        parts.append(evidence.of_keys)
    return np.concatenate(parts, axis=1)


NAME = "conversation"
T = TypeVar("T")


@dataclass(slots=True)
class ConversationExamination(Examination):
    """An `Examination` where the documents are messages; it has one outcome.

    A message that is over a limit, fails, or gets no verdict is left out: what the others say counts, and
    where that is no finding the conversation has no verdict either. Companions add nothing.

    Raises:
        Unprocessable: none of the keys is of this system, or can be detected with.
    """

    request: CombinedRequest
    _messages: list[ReadMessage] = field(default_factory=list)
    _evidence: GrownEvidence | None = None
    _failed: DetectionResult | None = None
    _is_to_be_read: bool = False

    def __post_init__(self) -> None:
        if not self.selection.tries:
            raise Unprocessable("A conversation is asked about with keys of this system.", param="keys")

    def look(self) -> None:
        """Reads all messages and tries the keys on them without a language model. Raises as its base."""
        for index in range(len(self.request.inputs)):
            readers = self._readers(index)
            asked = None if self._counted is None else self._counted.documents[index]
            self._messages.append(ReadMessage(readers, asked) if readers else ReadMessage())
        readers = [reader for one in self._messages for reader in one.readers]
        self._check_cost(readers)
        self._evidence = self._unless_all_fails(
            lambda: grown_evidence(self._messages, self.selection.own, {})
        )
        if self._evidence is not None:
            self._is_to_be_read = self._shares_the_rate and conversation_may_be_read(
                self._evidence.log10_p, self.request.fpr, self.request.reader
            )

    @property
    def unread(self) -> list[Content]:
        return self._readable if self._is_to_be_read else []

    def outcomes(
        self, readings: Mapping[Content, ByteReading]
    ) -> list[tuple[DetectionResult, DocumentFinding | None]]:
        """The one result."""
        first, result = self._evidence, None
        if first is not None:
            result = self._unless_all_fails(partial(self._made, first, readings))
        result = result or self._failed
        return [] if result is None else [(result, None)]

    def _unless_all_fails(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except BaseException as error:
            if not is_fault(error):
                raise
            self._failed = not_examined(NAME, error, self.words, CombinedResult)
        return None

    def _made(self, first: GrownEvidence, readings: Mapping[Content, ByteReading]) -> DetectionResult:
        is_missed = self.reader == "down" and self._wants_a_reader
        state: ReaderState = "down" if is_missed else "none"
        evidence = first
        if self._shares_the_rate:
            second = None
            if self._is_to_be_read and all(text in readings for text in self._readable):
                second = grown_evidence(self._messages, self.selection.own, readings)
            state = "read" if second else "down" if self._is_to_be_read else "not_needed"
            evidence = first.with_reading(second)
        return self._result(evidence, state if self.shows_evidence else None)

    @property
    def _readable(self) -> list[Content]:
        """Texts that are not too long for a reader, each once."""
        most = self.backend.most_read_characters
        texts = [reader.text for one in self._messages for reader in one.readers]
        return [text for text in dict.fromkeys(texts) if 0 < len(text) <= most]

    @property
    def _shares_the_rate(self) -> bool:
        """Known before any score is: whether the rate is shared with a second step."""
        return self.reader == "up" and self._wants_a_reader and bool(self._readable)

    def _read(self, index: int) -> Sequence[DocumentReader] | DocumentError | DetectionResult:
        read = Examination._read(self, index)
        if not isinstance(read, DetectionResult):
            empty = CombinedResult(id=self.name(index), verdict="not_detected", tokens=0, hypotheses=0)
            for companion in self.companions:  # raises what came up when the message was prepared
                companion.finish(index, empty)
        return read

    @property
    def _counted(self) -> Counted | None:
        """Of a caller who sees verdicts alone: the messages, counted."""
        found = (one.counted for one in self.companions if isinstance(one, SpentQuestion))
        return next(found, None)

    def _result(self, evidence: GrownEvidence, reader: ReaderState | None) -> CombinedResult:
        """The result; its figures with the state of the reader alone."""
        result = self._decided(evidence)
        found, shown = result.verdict == "watermarked", reader is not None
        changed: dict[str, Any] = {"messages": self._shown_messages(evidence, found=found, shown=shown)}
        if shown and result.error is None:
            log10_p = evidence.log10_p
            changed |= {
                "p_value": 10**log10_p,
                "log10_p": log10_p,
                "log10_e": evidence.log10_e,
                "reader": reader,
                "key": self._best_key(evidence) if found else None,
                "weak": None if found else is_weak(log10_p, self.request.fpr),
            }
        if any(one.asked is not None and one.asked.reads_back is False for one in self._messages):
            changed["reads_back"] = False
        result = result.model_copy(update=changed)
        if result.error is not None:
            return result
        message = conversation_message(result, self.request.fpr, self.words)
        return result.model_copy(update={"message": message})

    def _decided(self, evidence: GrownEvidence) -> CombinedResult:
        lengths = self._lengths
        readings = max(sum(len(one.names) for one in message.readers) for message in self._messages)
        hypotheses = len(self._tries) * max(1, readings)
        facts: dict[str, Any] = {"id": NAME, "tokens": sum(lengths), "hypotheses": hypotheses}
        if evidence.log10_p <= math.log10(self.request.fpr):
            return CombinedResult(verdict="watermarked", **facts)
        refusal = self._unseen()
        if refusal is not None and self._counted is not None:
            self._counted.reasons.append(refusal.reason)
            return no_verdict(NAME, refusal, self._counted.rule, self.words, CombinedResult)
        withheld = [result for result, _ in self._outcomes.values()]
        if withheld:
            most = min(withheld, key=lambda one: one.verdict != "no_verdict")
            return most.model_copy(update={"id": NAME})  # type: ignore[return-value]
        # Each message pays for all keys by itself.
        decision = without_finding(self._reach(tries=len(self._tries) ** len(lengths)), self.request.fpr)
        return CombinedResult(verdict=decision.verdict, tokens_typical=decision.tokens_typical, **facts)

    def _shown_messages(
        self, evidence: GrownEvidence, *, found: bool, shown: bool
    ) -> list[ConversationMessage]:
        own, tries = log10_mean(evidence.of_keys, axis=1), self._tries
        messages = []
        for index, length in enumerate(self._lengths):
            left_out = self._outcomes.get(index)
            best = tries[int(evidence.of_keys[index].argmax())] if found and own[index] > 0.0 else None
            messages.append(
                ConversationMessage(
                    id=self.name(index),
                    tokens=length,
                    error=None if left_out is None else left_out[0].error,
                    log10_e=float(evidence.grown[index]) if shown else None,
                    key=shown_key(*best) if shown and best else None,
                )
            )
        return messages

    def _best_key(self, evidence: GrownEvidence) -> DetectedKey:
        """The version that explains the messages best; which key of its pool they have is theirs to say."""
        columns: dict[tuple[str, int], list[int]] = {}
        for column, (key, version, _) in enumerate(self._tries):
            columns.setdefault((key.key_id, version.version), []).append(column)
        best = max(
            columns.values(),
            key=lambda own: float(log10_mean(evidence.of_keys[:, own], axis=1).sum()),
        )
        key, version, _ = self._tries[best[0]]
        return shown_key(key, version, None)

    def _unseen(self) -> Refusal | None:
        """Whether what is spent might be why nothing was found: nobody remembers what was said of it."""
        asked = [one.asked for one in self._messages if one.asked is not None]
        if not asked:
            return None
        target = math.log10(self.request.fpr)
        usual = min(
            typical_tokens(reach.watermark, target - math.log10(reach.correction))
            for reach in self._reach(tries=len(self._tries))
        )
        for key in self.selection.own:
            spent = [one.spent_rows(key) for one in asked]
            if UNSEEN_SHARE * sum(spent) >= usual:
                return Refusal("spent", max(one.standing.wait_seconds for one in asked))
        return None

    def _reach(self, tries: int) -> list[Reach]:
        reaches = []
        for key in {key.profile.profile_id: key for key in self.selection.own if key.detectable}.values():
            watermark = key.profile.watermark()
            width, size = watermark.context_width, watermark.block_size
            tokens = [one.readers[0].token_ids(key).size for one in self._messages if one.readers]
            positions = sum(max(0, count - width - size + 1) for count in tokens)
            reaches.append(Reach(watermark, -(-positions // size), tries))
        return reaches

    @property
    def _tries(self) -> list[Try]:
        return [
            (key, version, number)
            for key in self.selection.own
            for version in key.detectable
            for number in range(len(version.prf_keys))
        ]

    @property
    def _lengths(self) -> list[int]:
        """Tokens of each message as it was sent; 0 of those that are left out."""
        key = self.selection.own[0]
        return [one.readers[0].token_ids(key).size if one.readers else 0 for one in self._messages]
