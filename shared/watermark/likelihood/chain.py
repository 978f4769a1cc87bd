"""One text as the passes over it read it: which blocks it has, how they may be edited; no key, no score."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.laws import Floats
from ttmark.shared.watermark.likelihood.ratios import NEUTRAL, PLAIN, Ratios

MOST_PATHS = 64  # as in kernels.c


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """What may happen at each position of a text, where blocks may begin.

    Attributes:
        ratios: L by strength, class and cell.
        kinds: class of each block [positions] uint8.
        surprise: how far the chance to leave a run goes towards 1 before each block, 0 to 1 [positions].
        paths: priors as `paths.as_table` gives them [paths, 7].
        tokens: of a block.
    """

    ratios: Ratios
    kinds: NDArray[np.uint8]
    surprise: Floats
    paths: Floats
    tokens: int

    def __post_init__(self) -> None:
        if not 1 <= len(self.paths) <= MOST_PATHS:
            raise ValueError(f"1 to {MOST_PATHS} priors over paths, not {len(self.paths)}")
        if self.kinds.shape != self.surprise.shape:
            raise ValueError(f"{self.surprise.size} surprises for {self.kinds.size} positions")
        if self.kinds.size and int(self.kinds.max()) >= self.ratios.ratios.shape[1]:
            raise ValueError("a class of blocks that there is no table for")

    @classmethod
    def plain(cls, ratios: Ratios, positions: int, paths: Floats, tokens: int) -> "Chain":
        """A text without a reader, no block of which repeats."""
        kinds = np.full(positions, PLAIN, dtype=np.uint8)
        return cls(ratios, kinds, np.zeros(positions), paths, tokens)

    @property
    def positions(self) -> int:
        return int(self.kinds.size)

    def with_paths(self, paths: Floats) -> "Chain":
        """The same text under other priors."""
        return replace(self, paths=paths)

    def without(self, spent: NDArray[np.bool_]) -> "Chain":
        """The same text, whose blocks where `spent` [positions] say nothing: L = 1, and in draws too."""
        return replace(self, kinds=np.where(spent, NEUTRAL, self.kinds).astype(np.uint8))
