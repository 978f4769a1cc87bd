"""What a tenant's callers were told lately: answers about each row of evidence, and the rates asked at.

A row is a context and its block, as a detector reads them. Every tenant has a space of fixed size. It forgets
nothing before its time, so nobody regains answers about an old text by sending new ones: a space that is full
takes no new text until its window has passed. Cells may be shared by chance; then a count is too high, never
too low.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

CELLS = 4_000_000  # counters of a byte each: with its head the array fits in 4 MiB
CAPACITY = 5 * CELLS  # rows until a space is full: of others, one in 200 is then spent by chance
LEAST_ROWS = 256  # what a document takes of it, at least: what was answered is kept too
MOST_ANSWERS = 250  # of what fits in a byte
DIGEST_BYTES = 8

FINDINGS_UNIT = 1e-9  # of an expected false finding

# What a row is for one document. WARM: half of its answers are used up, this one included; TURNING: exactly
# half, or all. Of those that are spent the LASTING ones are so by the answers of this generation alone.
FRESH, WARM, TURNING, SPENT, LASTING = range(5)
States = NDArray[np.uint8]
Names = NDArray[np.uint64]
"""Keyed hashes of rows."""

Reason = Literal["spent", "findings", "space", "carrier"]
STORE_REASONS: tuple[Reason, ...] = ("findings", "space")
REASONS: tuple[Reason, ...] = ("spent", *STORE_REASONS, "carrier")


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """How much a caller may learn.

    Attributes:
        limit: answers about the same row, 1 to 250.
        window_seconds: counts cover at least half of it and are forgotten at its end.
        findings: false findings that its questions may be expected to give, by the rates asked at.
    """

    limit: int
    window_seconds: float
    findings: float = math.inf

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MOST_ANSWERS or self.window_seconds <= 0 or self.findings <= 0:
            raise ValueError(
                f"a rule needs a limit of 1 to {MOST_ANSWERS}, a positive window and positive findings"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One document as a space sees it.

    Attributes:
        digest: of the document and all options, 8 bytes; the same again is no question.
        cells: the counter of each of its rows, in each layer [layers, rows].
        price: false findings that are to be expected of it, in units of `FINDINGS_UNIT`.
    """

    digest: bytes
    cells: NDArray[np.uint32]
    price: int = 0


@dataclass(frozen=True, slots=True)
class Inquiry:
    """The questions of one request.

    Attributes:
        space: whose space, by a keyed name.
        caller: whose ration of chance findings, by a keyed name.
        limits: answers about a row, in each layer. A row that is spent in one is not counted in the next.
        now: seconds since 1970.
    """

    space: str
    caller: str
    questions: Sequence[Question]
    limits: Sequence[int]
    window_seconds: float
    findings: float
    now: float

    @property
    def span(self) -> float:
        """Seconds of one generation of counts: two together make the window."""
        return self.window_seconds / 2

    @property
    def generation(self) -> int:
        """Number of the current generation."""
        return int(self.now // self.span)

    @property
    def budget(self) -> int:
        """Expected false findings that a caller may draw, in units."""
        return round(min(self.findings / FINDINGS_UNIT, 2.0**52))

    def wait_seconds(self, *, lasting: bool) -> float:
        """Until counts end; `lasting`: those of this generation."""
        return max(1.0, (self.generation + (2 if lasting else 1)) * self.span - self.now)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a document gets no verdict, and for how many seconds; None: always."""

    reason: Reason
    wait_seconds: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """What a space says of one question: the states of its rows [rows], or why it is refused."""

    states: States
    refusal: Refusal | None = None


def states_of(packed: bytes, rows: int) -> States:
    """The states of a document as they are kept: nothing where all rows were fresh."""
    return np.frombuffer(packed if len(packed) == rows else bytes(rows), dtype=np.uint8)
