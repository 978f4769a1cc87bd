"""From the evidence of a conversation to the answer that its caller may see.

Also here, what the messages of a conversation say together, over all keys, ways of reading, and with a
reader.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.cascade import FIRST_SHARE, SECOND_SHARE
from ttmark.detect_service.document_reader import DocumentReader
from ttmark.detect_service.examination import name_of
from ttmark.detect_service.failures import no_verdict
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.results import is_weak
from ttmark.detect_service.spent_document import UNSEEN_SHARE, AskedDocument
from ttmark.detect_service.verdict import Reach, typical_tokens, without_finding
from ttmark.shared.byte_reading import ByteReading
from ttmark.shared.detection_words import conversation_message
from ttmark.shared.keys.records import UnlockedKey, UnlockedVersion
from ttmark.shared.languages.words import Words
from ttmark.shared.limits.row_space import Reason, Refusal
from ttmark.shared.schemas.detection import CombinedRequest, DetectedKey, DetectionResult
from ttmark.shared.schemas.detection_combined import CombinedResult, ConversationMessage, ReaderState
from ttmark.shared.watermark.likelihood.evidence import ConversationEvidence, detect_conversation
from ttmark.shared.watermark.likelihood.forward_backward import log10_mean
from ttmark.shared.watermark.likelihood.reading import Reading

Floats = NDArray[np.float64]
Try = tuple[UnlockedKey, UnlockedVersion, int]
"""A key, its version, and a number in the version's pool."""


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A message that counts, or one that is left out: without readers.

    Attributes:
        readers: the ways it is read in, as it was sent first.
        asked: of a caller who sees verdicts alone: what of it is spent.
    """

    readers: Sequence[DocumentReader] = ()
    asked: AskedDocument | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GrownEvidence:
    """Of a conversation.

    Attributes:
        grown: log10 of E of the messages up to each [messages]: a mean over the ways of reading, each the
            product over messages of the mean over keys.
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


def tries_of(keys: Sequence[UnlockedKey]) -> list[Try]:
    """All keys that a message may have been written with, in the order of `GrownEvidence.of_keys`."""
    return [
        (key, version, number)
        for key in keys
        for version in key.detectable
        for number in range(len(version.prf_keys))
    ]


def grown_evidence(
    messages: Sequence[Message], keys: Sequence[UnlockedKey], readings: Mapping[str, ByteReading]
) -> GrownEvidence:
    """The evidence of messages in order.

    The ways of reading are fixed by the texts alone: all messages as they were sent, and, where one of them
    has tricks, all without. E is the mean of both, so that no way has to be chosen by its scores.

    Args:
        readings: what a language model says of texts; one that has none is read without.

    Raises:
        ValueError: a token that is none.
    """
    ways = range(max((len(one.readers) for one in messages), default=1) or 1)
    found = [ConversationEvidence(_of_keys(messages, keys, readings, place)) for place in ways]
    grown = [one.grown for one in found]
    best = int(np.argmax([one[-1] for one in grown]))
    return GrownEvidence(log10_mean(np.array(grown)), found[best].of_keys)


def _of_keys(
    messages: Sequence[Message],
    keys: Sequence[UnlockedKey],
    readings: Mapping[str, ByteReading],
    place: int,
) -> Floats:
    """log10 E of each message under each try [messages, tries], in way of reading number `place`."""
    parts = []
    for key in keys:
        prf_keys = [prf_key for version in key.detectable for prf_key in version.prf_keys]
        if not prf_keys:
            continue
        tokens, read, spent = [], [], []
        for message in messages:
            own = min(place, len(message.readers) - 1)
            reader = message.readers[own] if message.readers else None
            tokens.append(np.zeros(0, dtype=np.int64) if reader is None else reader.token_ids(key))
            read.append(None if reader is None else _reading(reader, key, readings))
            redrawn = None if message.asked is None or reader is None else message.asked.redrawn(key)[own]
            spent.append(None if redrawn is None else redrawn.rows)
        found = detect_conversation(key.profile.watermark(), prf_keys, tokens, readings=read, spent=spent)
        parts.append(found.of_keys)
    return np.concatenate(parts, axis=1)


def _reading(reader: DocumentReader, key: UnlockedKey, readings: Mapping[str, ByteReading]) -> Reading | None:
    found = readings.get(reader.text)
    return None if found is None else reader.reading(key, found)


NAME = "conversation"


@dataclass(frozen=True, slots=True)
class ConversationResults:
    """Of a request whose messages were read.

    Attributes:
        left_out: what messages would have been told that do not count, by their place.
    """

    request: CombinedRequest
    selection: KeySelection
    messages: Sequence[Message]
    left_out: Mapping[int, DetectionResult]
    words: Words

    def result(self, evidence: GrownEvidence, reader: ReaderState | None) -> CombinedResult:
        """The result; its figures with the state of the reader alone."""
        result = self._verdict(evidence)
        found, shown = result.verdict == "watermarked", reader is not None
        changed: dict[str, Any] = {"messages": self._messages(evidence, found=found, shown=shown)}
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
        if any(one.asked is not None and one.asked.reads_back is False for one in self.messages):
            changed["reads_back"] = False
        result = result.model_copy(update=changed)
        if result.error is None:
            result = result.model_copy(
                update={"message": conversation_message(result, self.request.fpr, self.words)}
            )
        return result

    def reasons(self, evidence: GrownEvidence) -> list[Reason]:
        """Why there is no verdict of messages, or of the conversation."""
        spent = None if self._is_found(evidence) else self._unseen()
        return [] if spent is None else [spent[0].reason]

    def _is_found(self, evidence: GrownEvidence) -> bool:
        return evidence.log10_p <= math.log10(self.request.fpr)

    def _verdict(self, evidence: GrownEvidence) -> CombinedResult:
        lengths = self._lengths
        facts: dict[str, Any] = {"id": NAME, "tokens": sum(lengths), "hypotheses": self._hypotheses}
        if self._is_found(evidence):
            return CombinedResult(verdict="watermarked", **facts)
        spent = self._unseen()
        if spent is not None:
            refusal, asked = spent
            return no_verdict(NAME, refusal, asked.rule, self.words, CombinedResult)  # type: ignore[return-value]
        withheld = sorted(self.left_out.values(), key=lambda one: one.verdict != "no_verdict")
        if withheld:
            return withheld[0].model_copy(update={"id": NAME})  # type: ignore[return-value]
        # Each message pays for all keys by itself.
        decision = without_finding(self._reach(tries=len(self._tries) ** len(lengths)), self.request.fpr)
        return CombinedResult(verdict=decision.verdict, tokens_typical=decision.tokens_typical, **facts)

    def _messages(self, evidence: GrownEvidence, *, found: bool, shown: bool) -> list[ConversationMessage]:
        own, tries = log10_mean(evidence.of_keys, axis=1), self._tries
        messages = []
        for index, length in enumerate(self._lengths):
            left_out = self.left_out.get(index)
            best = tries[int(evidence.of_keys[index].argmax())] if found and own[index] > 0.0 else None
            messages.append(
                ConversationMessage(
                    id=name_of(self.request, index),
                    tokens=length,
                    error=None if left_out is None else left_out.error,
                    log10_e=float(evidence.grown[index]) if shown else None,
                    key=_shown(best, alone=True) if shown and best else None,
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
        return _shown(self._tries[best[0]], alone=False)

    def _unseen(self) -> tuple[Refusal, AskedDocument] | None:
        """Whether what is spent might be why nothing was found: nobody remembers what was said of it."""
        asked = [one.asked for one in self.messages if one.asked is not None]
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
                longest = max((one.standing.wait_seconds for one in asked), default=0.0)
                return Refusal("spent", longest), asked[0]
        return None

    def _reach(self, tries: int) -> list[Reach]:
        reaches = []
        for key in {key.profile.profile_id: key for key in self.selection.own if key.detectable}.values():
            watermark = key.profile.watermark()
            width, size = watermark.context_width, watermark.block_size
            tokens = [one.readers[0].token_ids(key).size for one in self.messages if one.readers]
            positions = sum(max(0, count - width - size + 1) for count in tokens)
            reaches.append(Reach(watermark, -(-positions // size), tries))
        return reaches

    @property
    def _tries(self) -> list[Try]:
        return tries_of(self.selection.own)

    @property
    def _hypotheses(self) -> int:
        return len(self._tries) * max((len(one.readers) for one in self.messages), default=1)

    @property
    def _lengths(self) -> list[int]:
        """Tokens of each message as it was sent; 0 of those that are left out."""
        key = self.selection.own[0]
        return [one.readers[0].token_ids(key).size if one.readers else 0 for one in self.messages]


def _shown(made_with: Try, *, alone: bool) -> DetectedKey:
    key, version, number = made_with
    profile = key.profile
    return DetectedKey(
        key_id=key.key_id,
        version=version.version,
        profile=profile.profile_id,
        pool_key=number if alone and profile.pool > 1 else None,
        payload=number if alone and profile.payloads else None,
    )
