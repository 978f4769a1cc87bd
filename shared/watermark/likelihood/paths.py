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
STRENGTHS = 2


def evidence_paths(by_surprise: bool) -> tuple[Path, ...]:
    """The priors that E is the mean over; with a reader half of them follow its surprise."""
    kinds = (False, True) if by_surprise else (False,)
    return tuple(
        Path(strength, leave, by_surprise=kind)
        for kind in kinds
        for strength in range(STRENGTHS)
        for leave in _LEAVES
    )


def sparse_paths(positions: int) -> tuple[Path, ...]:
    """One short passage or so in so many positions: where E of unmarked text is large, this is why."""
    find = 1.0 / max(4, positions)
    return tuple(
        Path(strength, leave, enter, find, lose, away=1.0 - min(0.9, 20.0 / max(20, positions)))
        for strength in range(STRENGTHS)
        for leave, enter, lose in ((0.5, 0.2, 0.5), (0.2, 0.3, 0.3), (0.06, 0.35, 0.3))
    )


def as_table(paths: Sequence[Path]) -> NDArray[np.float64]:
    """One row a prior, as the forward algorithm reads them: [paths, 7]."""
    return np.array(
        [
            (p.strength, p.leave, p.enter, p.find, p.lose, p.away, float(p.by_surprise))
            for p in paths
        ]
    )
