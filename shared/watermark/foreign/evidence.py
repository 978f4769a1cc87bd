"""What is asked of another system's watermark, and what it answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.positions import check_tokens

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ForeignEvidence:
    """A text, or a part of it, under one key of a foreign scheme.

    Attributes:
        log10_p: exact over keys; no repeated draw of the scheme counts twice.
        score: the statistic of the scheme's own detector, for the positions that are scored.
        scored_tokens: positions that are scored.
    """

    log10_p: float
    score: float
    scored_tokens: int


NOTHING_SCORED = ForeignEvidence(0.0, 0.0, 0)


class ScoredText(Protocol):
    """A text whose tokens were scored under one key."""

    @property
    def positions(self) -> Tokens:
        """Places in the text of the scored tokens [N], ascending."""

    def keeping(self, kept: NDArray[np.bool_]) -> "ScoredText":
        """The text with these of its scored tokens [N] alone."""

    def evidence(self, first: int, last: int) -> ForeignEvidence:
        """What the scored tokens `first` to `last`, the latter left out, say by themselves; at least one."""


class ForeignMark(ABC):
    """A scheme with its key."""

    @property
    @abstractmethod
    def row_tokens(self) -> int:
        """Tokens that a score depends on, the scored one included."""

    @abstractmethod
    def read(self, tokens: Tokens) -> ScoredText:
        """Scores a text, 32-bit token ids with the prompt left out where that is known."""

    @abstractmethod
    def tokens_needed(self, log10_p: float) -> int:
        """The least number of tokens whose best possible score reaches this p-value."""

    def detect(self, tokens: Sequence[int] | Tokens) -> ForeignEvidence:
        """Tests a text as a whole."""
        text = self.read(check_tokens(tokens))
        return text.evidence(0, text.positions.size) if text.positions.size else NOTHING_SCORED


def smallest_count(log10_p: float, best: Callable[[int], float]) -> int:
    """The least count whose best score has this p-value or a smaller one.

    Args:
        best: log10 of the p-value of the best possible score of so many tokens; it falls with each.
    """
    count = 1
    while best(count) > log10_p:
        count += 1
    return count
