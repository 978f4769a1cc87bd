"""A filtered distribution: the tokens that the filters leave, and how likely each is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Support:
    """Tokens with mass after the filters, likeliest first.

    Attributes:
        ids: [n] int64.
        probs: [n] float64, positive, sums to 1.
    """

    ids: NDArray[np.int64]
    probs: NDArray[np.float64]


def choose(probs: NDArray[np.float64], uniform: float) -> int:
    """Index drawn from `probs` ([n], not necessarily normalised) by inversion of the cumulative sum.

    Never returns an index without mass.
    """
    cumulative = np.cumsum(probs)
    index = int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))
    last = int(np.flatnonzero(probs)[-1])
    return min(index, last)
