"""What a tenant's callers were told lately: answers about each row of evidence, and the rates asked at.

A row is a context and its block, as a detector reads them. Every tenant has a space of fixed size. It forgets
nothing before its time, so nobody regains answers about an old text by sending new ones: a space that is full
takes no new text until its window has passed. Cells may be shared by chance; then a count is too high, never
too low.
"""

import math
from collections import Counter
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
WINDOW_SECONDS = 86_400.0
"""Answers count for half of it at least: as long as people work on a text in a day. With a longer one a space
would be full sooner, and a shorter one would give answers back to whoever waits a little."""

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
    window_seconds: float = WINDOW_SECONDS
    findings: float = math.inf

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MOST_ANSWERS or self.window_seconds <= 0 or self.findings <= 0:
            raise ValueError(
                f"a rule needs a limit of 1 to {MOST_ANSWERS}, a positive window and positive findings"
            )


@dataclass(frozen=True, slots=True, eq=False)
class CountedDocument:
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
    questions: Sequence[CountedDocument]
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


class _Generation:
    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.cells = np.zeros(CELLS, dtype=np.uint8)
        self.answered: dict[bytes, bytes] = {}
        self.filled = 0
        self.drawn: Counter[str] = Counter()


class LocalSpaces:
    """Every tenant's space; what `redis_counters.lua` does, in the plainest way."""

    def __init__(self) -> None:
        self._spaces: dict[str, dict[int, _Generation]] = {}

    def ask(self, inquiry: Inquiry) -> list[Reply]:
        current, before = self._generations(inquiry)
        return [_ask(inquiry, question, current, before) for question in inquiry.questions]

    def _generations(self, inquiry: Inquiry) -> tuple[_Generation, _Generation]:
        if inquiry.space not in self._spaces:
            self._forget(inquiry.now)
        space = self._spaces.setdefault(inquiry.space, {})
        number = inquiry.generation
        for old in [one for one in space if one < number - 1]:
            del space[old]
        for needed in (number, number - 1):
            if needed not in space:
                space[needed] = _Generation((needed + 2) * inquiry.span)
        return space[number], space[number - 1]

    def _forget(self, now: float) -> None:
        """Gives up spaces that nobody has used for a whole window."""
        self._spaces = {
            name: space
            for name, space in self._spaces.items()
            if any(generation.ends_at > now for generation in space.values())
        }


def _ask(inquiry: Inquiry, question: CountedDocument, current: _Generation, before: _Generation) -> Reply:
    rows = question.cells.shape[1]
    for generation in (current, before):
        if question.digest in generation.answered:
            return Reply(states_of(generation.answered[question.digest], rows))
    refusal = _refusal(inquiry, question, current, before)
    if refusal is not None:
        return Reply(np.zeros(rows, dtype=np.uint8), refusal)
    states = np.zeros(rows, dtype=np.uint8)
    for cells, limit in zip(question.cells, inquiry.limits, strict=True):
        states = _counted(cells, limit, states, current, before)
    current.answered[question.digest] = states.tobytes() if states.any() else b""
    current.drawn[inquiry.caller] += question.price
    current.filled += max(LEAST_ROWS, rows)
    return Reply(states)


def _refusal(
    inquiry: Inquiry, question: CountedDocument, current: _Generation, before: _Generation
) -> Refusal | None:
    mine = current.drawn[inquiry.caller] + question.price
    if mine + before.drawn[inquiry.caller] > inquiry.budget:
        return Refusal("findings", inquiry.wait_seconds(lasting=mine > inquiry.budget))
    held = current.filled + max(LEAST_ROWS, question.cells.shape[1])
    if held + before.filled > CAPACITY:
        return Refusal("space", inquiry.wait_seconds(lasting=held > CAPACITY))
    return None


def _counted(
    cells: NDArray[np.uint32], limit: int, states: States, current: _Generation, before: _Generation
) -> States:
    """The states after one layer more, whose counters are increased."""
    mine = current.cells[cells].astype(np.int64)
    answers = mine + before.cells[cells]
    spent = answers >= limit
    current.cells[np.unique(cells[(states < SPENT) & ~spent])] += 1
    half, told = -(-limit // 2), answers + 1
    warm = np.where((told == half) | (told == limit), TURNING, np.where(told > half, WARM, FRESH))
    found = np.where(spent, np.where(mine >= limit, LASTING, SPENT), warm)
    return np.maximum(states, found).astype(np.uint8)
