"""What a model says of a text, in the bytes of the text, so that it can be said of any tokens."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Fault = Literal["not_numbers", "length", "gap", "overlap", "another_text", "positive", "not_finite"]

Content = str | tuple[int, ...]
"""What a language model reads: a text, or the token ids of one."""

LEAST_LOGPROB = -9999.0
"""Nats; what is less likely counts as this, and JSON, which has no infinity, says this for it."""
_ROUNDING = 1e-6


_ID_BYTES = 4


def content_bytes(content: Content) -> bytes:
    """The bytes that a reading has parts of: UTF-8 of a text, four of each token id, little-endian.

    Raises:
        OverflowError: an id has no place in them.
    """
    return content.encode() if isinstance(content, str) else np.array(content, dtype="<u4").tobytes()


def id_ends(count: int) -> Ints:
    """Where each of so many token ids ends in their bytes [tokens]."""
    return np.arange(1, count + 1, dtype=np.int64) * _ID_BYTES


class InvalidReading(Exception):
    """A reading that no model can have given of the text; nothing of it is used.

    Attributes:
        fault: what is wrong with it.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"invalid reading: {fault}")
        self.fault = fault


@dataclass(frozen=True, slots=True, eq=False)
class ByteReading:
    """Parts of a text, each with its log-probability after those before it; together they are the text.

    Attributes:
        ends: [parts] where each ends in the UTF-8 of the text; it begins where the one before it ends.
        logprobs: [parts] nats, at most 0.
    """

    ends: Ints
    logprobs: Floats

    @classmethod
    def checked(
        cls, starts: ArrayLike, ends: ArrayLike, logprobs: Sequence[float | None] | Floats, size: int
    ) -> Self:
        """A reading that somebody else gave of a text of `size` bytes.

        Args:
            starts, ends: [parts] half-open byte spans.
            logprobs: [parts] nats; None for the first where the model says nothing of it: it counts as
                certain.

        Raises:
            InvalidReading: the spans are not the whole text in order, or a log-probability is none.
        """
        first, last = (_numbers(places, "i").astype(np.int64) for places in (starts, ends))
        said = checked_logprobs(logprobs)
        if not len(first) == len(last) == len(said):
            raise InvalidReading("length")
        if (size and (not len(last) or last[-1] != size)) or (len(last) and last[-1] > size):
            raise InvalidReading("another_text")
        begins = np.concatenate([[0], last[:-1]])[: len(last)]
        if np.any(first > begins):
            raise InvalidReading("gap")
        if np.any(first < begins) or np.any(first >= last):
            raise InvalidReading("overlap")
        return cls(last, said)

    @classmethod
    def of_tokens(cls, ends: Ints, logprobs: Floats) -> Self:
        """Of tokens, by `byte_ends`; one without a byte of its own becomes one part with the next that has.

        Tokens without bytes at the end of the text belong to the part before them.
        """
        if not len(ends) or not ends[-1]:
            return cls(ends[:0], logprobs[:0])
        own = np.flatnonzero(np.diff(ends, prepend=0) > 0)
        first = np.concatenate([[0], own[:-1] + 1])
        return cls(ends[own], np.add.reduceat(logprobs, first))

    @property
    def starts(self) -> Ints:
        """[parts] where each begins."""
        return np.concatenate([[0], self.ends[:-1]])[: len(self.ends)].astype(np.int64)

    def log_probs(self, spans: Ints) -> Floats:
        """Nats of each span [spans, 2] of bytes, as `surprise` has them."""
        nats: Floats = -self.surprise(spans) * math.log(2)
        return nats

    def surprise(self, spans: Ints) -> Floats:
        """Bits of each span [spans, 2] of bytes: a part's -log2 p is spread evenly over its bytes.

        Raises:
            InvalidReading: a span reaches beyond the text that was read.
        """
        if spans.size and (spans.min() < 0 or spans.max() > (self.ends[-1] if len(self.ends) else 0)):
            raise InvalidReading("another_text")
        if not spans.size:
            return np.zeros(len(spans))
        bounds = np.concatenate([[0], self.ends])
        until = np.concatenate([[0.0], np.cumsum(-self.logprobs / math.log(2))])
        through = np.interp(spans, bounds, until)
        bits: Floats = np.maximum(through[:, 1] - through[:, 0], 0.0)
        return bits


def _numbers(values: object, kinds: str) -> NDArray[Any]:
    """A flat array of numbers of numpy's `kinds`."""
    try:
        found = np.asarray(values)
    except (ValueError, OverflowError):
        raise InvalidReading("not_numbers") from None
    if found.ndim != 1 or (len(found) and found.dtype.kind not in kinds):
        raise InvalidReading("not_numbers")
    return found


def checked_logprobs(values: Sequence[float | None] | Floats) -> Floats:
    """Log-probabilities (nats) that somebody else has sent [tokens], at least `LEAST_LOGPROB`, at most 0.

    None for the first is taken for certainty: a model says nothing of a token that nothing stands before.

    Raises:
        InvalidReading: one is none.
    """
    known = [0.0, *values[1:]] if len(values) and values[0] is None else values
    said = _numbers(known, "fi").astype(np.float64)
    if not np.isfinite(said).all():
        raise InvalidReading("not_finite")
    if np.any(said > _ROUNDING):
        raise InvalidReading("positive")
    nats: Floats = np.clip(said, LEAST_LOGPROB, 0.0)
    return nats


def byte_ends(text: str, offsets: Sequence[tuple[int, int]]) -> Ints:
    """Where each token ends in the UTF-8 of its text [tokens]; it begins where the one before it ends.

    What no token names (blanks that a tokenizer drops) belongs to the token behind it, at the end of the text
    to the last. Tokens that are parts of one character share its bytes evenly.

    Args:
        offsets: half-open character spans, as a tokenizer gives them.
    """
    places = _byte_places(text)
    spans = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    ends = places[spans[:, 1]]
    if not len(ends):
        return ends
    parted = np.flatnonzero(spans[1:, 0] < spans[:-1, 1])
    letters = [(int(spans[index, 1]) - 1, int(index)) for index in parted]
    for letter, group in groupby(letters, key=itemgetter(0)):
        cuts = [index for _, index in group]
        first, size = int(places[letter]), int(places[letter + 1] - places[letter])
        for number, index in enumerate(cuts, 1):
            ends[index] = first + size * number // (len(cuts) + 1)
    ends = np.maximum.accumulate(ends)
    ends[-1] = places[-1]
    return ends


def byte_spans(text: str, offsets: Sequence[tuple[int, int]]) -> Ints:
    """The half-open byte span of each token [tokens, 2], by `byte_ends`."""
    ends = byte_ends(text, offsets)
    return np.column_stack([np.concatenate([[0], ends])[: len(ends)], ends])


def _byte_places(text: str) -> Ints:
    """Where each character begins in UTF-8, and where the text ends [characters + 1]."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    lengths = 1 + (points > 0x7F).astype(np.int64) + (points > 0x7FF) + (points > 0xFFFF)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


class Window(NamedTuple):
    """Tokens [start, end) that are read together, of which those from `kept` on are used."""

    start: int
    kept: int
    end: int


def reading_windows(tokens: int, size: int) -> Iterator[Window]:
    """Windows of at most `size` tokens; each but the first begins with a quarter that is context alone.

    Every token is kept once: the first window keeps all of its own, and later tokens have a quarter of a
    window before them at least.

    Args:
        tokens: of the text.
        size: at least 1.
    """
    overlap, start = size // 4, 0
    while start + overlap < tokens or not start:
        end = min(start + size, tokens)
        yield Window(start, start + overlap if start else 0, end)
        if end == tokens:
            return
        start += size - overlap
