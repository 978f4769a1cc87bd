"""Documents with planted spans, and how well a reported span fits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """Tokens, and where watermarked text stands among them."""

    tokens: NDArray[np.int64]
    spans: tuple[Span, ...]


def overlap(first: Span, second: Span) -> float:
    """Intersection over union."""
    shared = min(first.end, second.end) - max(first.start, second.start)
    if shared <= 0:
        return 0.0
    return shared / (max(first.end, second.end) - min(first.start, second.start))


def best_overlap(span: Span, others: Sequence[Span]) -> float:
    """Intersection over union with the best of the others, 0 without any."""
    return max((overlap(span, other) for other in others), default=0.0)


def plant(
    human: Sequence[NDArray[np.int64]],
    spans: Sequence[NDArray[np.int64]],
    length: int,
    generator: np.random.Generator,
) -> Document:
    """A document of `length` tokens by people with the spans at random places, in order.

    Raises:
        ValueError: the spans are longer than the document.
    """
    free = length - sum(span.size for span in spans)
    if free < 0:
        raise ValueError(f"spans of {length - free} tokens do not fit a document of {length}")
    around = _human_tokens(human, free, generator)
    cuts = np.sort(generator.integers(free + 1, size=len(spans)))
    pieces, places = [], []
    position = written = 0
    for cut, span in zip(cuts.tolist(), spans, strict=True):
        pieces += [around[position:cut], span]
        start = written + cut - position
        places.append(Span(start, start + span.size))
        written, position = start + span.size, cut
    pieces.append(around[position:])
    return Document(np.concatenate(pieces), tuple(places))


def _human_tokens(
    human: Sequence[NDArray[np.int64]], length: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Text by people from a random place; documents follow each other, counted round."""
    pieces: list[NDArray[np.int64]] = []
    have, document = 0, int(generator.integers(len(human)))
    offset = int(generator.integers(max(1, human[document].size)))
    while have < length:
        pieces.append(human[document % len(human)][offset : offset + length - have])
        have += pieces[-1].size
        document, offset = document + 1, 0
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)
