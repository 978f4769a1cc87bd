"""What a tenant's callers have asked lately: how often each passage, and at which rates.

Every tenant has a space of fixed size. It forgets nothing before its time, so nobody regains questions about
an old text by sending new ones: a space that is full takes no new text until its window has passed. Cells may
be shared by chance; then a count is too high, never too low.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

CELLS = 1 << 19  # counters of a byte each, for passages
DIGESTS = 1 << 14  # places for what was answered
CAPACITY = 10 * CELLS  # passages until a space is full: a cell then holds ten, few of them half of a limit
MOST_VARIANTS = 250  # of what fits in a byte
DIGEST_BYTES = 8
RUN = 16  # passages in a row: some seventy words

FINDINGS_UNIT = 1e-9  # of an expected false finding

Reason = Literal["variants", "findings", "space"]
REASONS: tuple[Reason, ...] = ("variants", "findings", "space")


@dataclass(frozen=True, slots=True)
class VariantRule:
    """How much a caller may ask.

    Attributes:
        limit: documents that hold the same passage, 1 to 250.
        window_seconds: counts cover at least half of it and are forgotten at its end.
        findings: false findings that its questions may be expected to give, by the rates asked at.
    """

    limit: int
    window_seconds: float
    findings: float = math.inf

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MOST_VARIANTS or self.window_seconds <= 0 or self.findings <= 0:
            raise ValueError(
                f"variants need a limit of 1 to {MOST_VARIANTS}, a positive window and positive findings"
            )


@dataclass(frozen=True, slots=True)
class Question:
    """One document as a space sees it.

    Attributes:
        digest: of the document and all options, 8 bytes; the same again is no question.
        cells: the counter of each of its passages, in order.
    """

    digest: bytes
    cells: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """The questions of one request.

    Attributes:
        space: whose space, by a keyed name.
        caller: who asks, by a keyed name.
        price: expected false findings of each question, in units of `FINDINGS_UNIT`.
        now: seconds since 1970.
    """

    space: str
    caller: str
    questions: Sequence[Question]
    rule: VariantRule
    price: int
    now: float

    @property
    def span(self) -> float:
        """Seconds of one generation of counts: two together make the window."""
        return self.rule.window_seconds / 2

    @property
    def generation(self) -> int:
        """Number of the current generation."""
        return int(self.now // self.span)

    @property
    def budget(self) -> int:
        """Expected false findings that a caller may draw, in units."""
        return round(min(self.rule.findings / FINDINGS_UNIT, 2.0**52))

    def refusal(self, reason: Reason, index: int, *, alone: bool) -> "Refusal":
        """Why and until when; `alone`: already by the counts of this generation."""
        end = (self.generation + (2 if alone else 1)) * self.span
        return Refusal(reason, index, max(1.0, end - self.now))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused, because of which of its documents, and for how many seconds."""

    reason: Reason
    index: int
    wait_seconds: float


def hot_needed(passages: int) -> int:
    """Passages of a run that must be over the limit for a document to be one more variant.

    Five of sixteen: fewer are a phrase or a formula of politeness that many texts share.
    """
    return min(5, (passages + 1) // 2)


def is_variant(hot: NDArray[np.bool_]) -> bool:
    """Whether a document's passages [passages] hold a run that was asked about too often."""
    if not len(hot):
        return False
    sums = np.concatenate([[0], np.cumsum(hot)])
    run = min(RUN, len(hot))
    return bool(np.max(sums[run:] - sums[:-run]) >= hot_needed(len(hot)))
