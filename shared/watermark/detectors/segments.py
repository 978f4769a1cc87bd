"""Segments: where in a document a watermark was found, and how surprising that is."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ttmark.shared.watermark.nulls import LN10

# Below this log10, E and 1 - exp(-E) are the same number.
_TINY = -15.0


class TokenSpan(Protocol):
    """Tokens [start, end) of a document."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


AnySpan = TypeVar("AnySpan", bound=TokenSpan)


@dataclass(frozen=True, slots=True)
class Peak:
    """A candidate span of tokens [start, end) with its score."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class LocalizedSegment:
    """A span of tokens [start, end) that carries the watermark."""

    start: int
    end: int
    score: float
    log10_e: float
    """log10 of the number of segments with such a score expected in this document by chance."""
    pool_key: int = 0
    """Number of the key, in its pool, that it was found with."""


def disjoint(spans: Iterable[AnySpan]) -> Iterator[AnySpan]:
    kept: list[AnySpan] = []
    for span in spans:
        if all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
            yield span


def log10_family(log10_e: float) -> float:
    """log10 of 1 - exp(-E): the chance that a document shows any segment of this E-value."""
    if log10_e < _TINY:
        return log10_e
    return math.log(-math.expm1(-(10.0**log10_e))) / LN10


def log10_expected(log10_p: float) -> float:
    """log10 of -ln(1 - p), the E-value of a document's p-value below 1; the inverse of `log10_family`."""
    if log10_p < _TINY:
        return log10_p
    return math.log10(-math.log1p(-min(10.0**log10_p, 1.0 - 1e-16)))
