"""How a block's score is distributed, given how likely the block was: score laws on cells of the score.

Given the block that was emitted and its probability p in P, a layered scheme is a Markov chain. Each layer
gives the block a hit or not, and changes p; the chance of each outcome is what the block's mass becomes in it
over what it was. The chain is exact where the other blocks are many and each is unlikely. Fewer rivals are
another mixture over p: mixtures are fitted to text. Schemes that give no closed form are simulated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.nulls import Null

Floats = NDArray[np.float64]
Cells = NDArray[np.uint16]

# Log odds of p at which laws are computed; between them they are interpolated. Scores with many values have a
# coarser grid: a law of 30 weighted layers takes 0.8 s.
_REACH = 16.0
_STEP, _COARSE_STEP, _MANY_VALUES = 0.05, 0.2, 1024


@dataclass(frozen=True, slots=True)
class CellScale:
    """Cells that scores fall into: cell i holds scores from i times `width` on, the last all above.

    Attributes:
        count: number of cells, at most 65,536.
    """

    count: int
    width: float = 1.0

    def of(self, scores: Floats) -> Cells:
        """The cell of each score, in any shape."""
        return np.minimum(scores * (1.0 / self.width), self.count - 1).astype(np.uint16)

    def edges(self) -> Floats:
        """Lower ends of the cells [count]."""
        return np.arange(self.count, dtype=np.float64) * self.width


@dataclass(frozen=True, slots=True)
class LayerOutcome:
    """One of the things that a layer may do to an emitted block of probability p, for many p at once.

    Attributes:
        hit: whether the layer's part of the score counts.
        mass: what it makes of p [P].
        share: how often it happens, whatever is emitted.
    """

    hit: bool
    mass: Floats
    share: float


Layer = Callable[[Floats], Sequence[LayerOutcome]]
"""Outcomes by p [P]; the sum over them of share times mass is p."""


def layered_law(
    layer: Layer, weights: Sequence[int], scale: CellScale, blend: float, probs: Floats
) -> Floats:
    """The law of the sum of `weights` of the layers that hit: [P, cells], rows sum to 1.

    Args:
        blend: share of a layer's result in what comes out of it; the rest is what went in.
        probs: in (0, 1] [P]. At 1 the law is the null's.
    """
    points = int(sum(weights)) + 1
    step = _STEP if points < _MANY_VALUES else _COARSE_STEP
    odds = np.arange(-_REACH, _REACH + step / 2, step)
    grid = 1.0 / (1.0 + np.exp(-odds))
    grid[-1] = 1.0  # to the chain 1 stays 1
    moves = [
        (outcome.hit, outcome.share * mass / grid, *_between(mass, odds))
        for outcome in layer(grid)
        for mass in [(1.0 - blend) * grid + blend * outcome.mass]
    ]
    law = np.zeros((grid.size, points))  # [grid, score] of the layers so far, the last ones first
    law[:, 0] = 1.0
    for weight in reversed(weights):
        before, law = law, np.zeros_like(law)
        for hit, chance, low, part in moves:
            moved = chance[:, None] * (before[low] + part[:, None] * (before[low + 1] - before[low]))
            if hit:
                law[:, weight:] += moved[:, : points - weight]
            else:
                law += moved
    low, part = _between(probs, odds)
    exact = law[low] + part[:, None] * (law[low + 1] - law[low])
    cells = np.zeros((probs.size, scale.count))
    for cell, column in zip(scale.of(np.arange(points, dtype=np.float64)).tolist(), exact.T, strict=True):
        cells[:, cell] += column
    shares: Floats = cells / cells.sum(axis=1, keepdims=True)
    return shares


def _between(probs: Floats, odds: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The number of the grid point below each p, and how far p is on the way to the next one."""
    with np.errstate(divide="ignore"):
        place = (np.log(probs) - np.log1p(-np.minimum(probs, 1.0)) - odds[0]) / (odds[1] - odds[0])
    place = np.clip(np.nan_to_num(place, neginf=0.0, posinf=odds.size), 0.0, odds.size - 1.0)
    low = np.minimum(place.astype(np.int64), odds.size - 2)
    return low, place - low


def null_cells(null: Null, scale: CellScale) -> Floats:
    """How a score without a mark falls into cells [cells], from the null's exact tail."""
    lower = scale.edges()[1:]
    above = np.array([10.0 ** null.log10_tail(float(edge), 1) for edge in lower])
    return np.clip(-np.diff(np.concatenate([[1.0], above, [0.0]])), 0.0, None)
