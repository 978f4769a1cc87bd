"""Where tokens stand in the bytes of their text, and in which windows a long text is read."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


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
