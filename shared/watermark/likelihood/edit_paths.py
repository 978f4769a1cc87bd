"""How marked text is edited: the prior over paths through a text, as a Markov chain with three states.

At the start of each token a path is *inside* (a block has just ended), in a *gap* (a few words of a marked
passage that carry no mark: edited ones), or *away* (text that is not ours). It begins a block there or skips
the token. A block takes it inside, r tokens on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Path:
    """One prior over paths; every chance is of a step at one token.

    Attributes:
        strength: number of the mixtures of p that its blocks have.
        leave: chance to leave a marked run after a block.
        enter: chance to begin a block in a gap.
        find: chance to begin a block away.
        lose: share of those who leave that go away; the others are in a gap.
        away: chance to start away, else in a gap.
        by_surprise: whether the chance to leave grows, and those to begin fall, with a token's surprise.
    """

    strength: int
    leave: float
    enter: float = 0.35
    find: float = 0.005
    lose: float = 0.1
    away: float = 0.5
    by_surprise: bool = False


_LEAVES = (0.015, 0.06, 0.2)
_FITTED, _WEAKER, _STRONGER = range(3)
STRENGTHS = (0, 2, -4)
"""How many points of p up the mixtures of each strength are moved: the last one is for draws alone."""


def evidence_paths(by_surprise: bool) -> tuple[Path, ...]:
    """The priors that E is the mean over; with a reader half of them follow its surprise."""
    kinds = (False, True) if by_surprise else (False,)
    return tuple(
        Path(strength, leave, by_surprise=kind)
        for kind in kinds
        for strength in (_FITTED, _WEAKER)
        for leave in _LEAVES
    )


def drawn_paths(positions: int) -> tuple[Path, ...]:
    """Further priors that draws come from, for texts with so many positions.

    Where E of text without the mark is large, it is by a few blocks together whose scores are high: short
    passages, and in short texts marks that are stronger than any text has.
    """
    rare = 1.0 / max(4, positions)
    return (
        Path(_STRONGER, 0.015),
        Path(_STRONGER, 0.06, find=0.1, lose=0.3, away=1.0),
        Path(_STRONGER, 0.2, find=rare, lose=0.3, away=1.0),
        Path(_FITTED, 0.015, find=0.1, away=1.0),
        Path(_FITTED, 0.06, find=rare, lose=0.3, away=1.0),
        Path(_WEAKER, 0.06, find=rare, lose=0.3, away=1.0),
    )


def as_table(paths: Sequence[Path]) -> NDArray[np.float64]:
    """One row a prior, as the forward algorithm reads them: [paths, 7]."""
    return np.array(
        [(p.strength, p.leave, p.enter, p.find, p.lose, p.away, float(p.by_surprise)) for p in paths]
    )
