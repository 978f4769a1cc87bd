"""What the messages of a conversation say together, over all keys, ways of reading, and with a reader."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.cascade import FIRST_SHARE, SECOND_SHARE
from ttmark.detect_service.document_reader import WEIGHTS, DocumentReader
from ttmark.detect_service.spent_document import SpentDocument
from ttmark.shared.byte_reading import ByteReading, Content
from ttmark.shared.keys.records import UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection import ReadingName
from ttmark.shared.watermark.likelihood.conversation import ConversationEvidence, detect_conversation
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


def tries_of(keys: Sequence[UnlockedKey]) -> list[Try]:
    """All keys that a message may have been written with, in the order of `GrownEvidence.of_keys`."""
    return [
        (key, version, number)
        for key in keys
        for version in key.detectable
        for number in range(len(version.prf_keys))
    ]


def grown_evidence(
    messages: Sequence[Message], keys: Sequence[UnlockedKey], readings: Mapping[Content, ByteReading]
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
    messages: Sequence[Message],
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
        tokens, read, spent = [], [], []
        for message, own in zip(messages, way, strict=True):
            reader = message.readers[own] if message.readers else None
            tokens.append(np.zeros(0, dtype=np.int64) if reader is None else reader.token_ids(key))
            read.append(None if reader is None else _reading(reader, key, readings))
            redrawn = None if message.asked is None or reader is None else message.asked.redrawn(key)[own]
            spent.append(None if redrawn is None else redrawn.rows)
        found = detect_conversation(key.profile.watermark(), prf_keys, tokens, readings=read, spent=spent)
        parts.append(found.of_keys)
    return np.concatenate(parts, axis=1)


def _reading(
    reader: DocumentReader, key: UnlockedKey, readings: Mapping[Content, ByteReading]
) -> Reading | None:
    found = readings.get(reader.content)
    return None if found is None else reader.reading(key, found)
