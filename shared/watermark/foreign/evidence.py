"""What the detector of another system's watermark says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ForeignEvidence:
    """A text under one key of a foreign scheme.

    Attributes:
        log10_p: exact over keys; no repeated draw of the scheme counts twice.
        score: the statistic of the scheme's own detector, for the positions that are scored.
        scored_tokens: positions that are scored.
    """

    log10_p: float
    score: float
    scored_tokens: int


NOTHING_SCORED = ForeignEvidence(0.0, 0.0, 0)


class ForeignMark(Protocol):
    """A scheme with its key."""

    def detect(self, tokens: Sequence[int] | NDArray[np.int64]) -> ForeignEvidence:
        """Tests a text from its token ids, the prompt left out."""
