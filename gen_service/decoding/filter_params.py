"""The filters of one row."""

from dataclasses import dataclass

WINDOW = 512
"""Tokens of a row that a support lists at most where the filters leave more."""


@dataclass(frozen=True, slots=True)
class FilterParams:
    """Filters of one row; temperature 0 leaves the likeliest token, top_k 0 and top_p 1 are off."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def bounded(self) -> bool:
        """Whether a few of the likeliest tokens are all that can be left."""
        return self.greedy or 0 < self.top_k <= WINDOW
