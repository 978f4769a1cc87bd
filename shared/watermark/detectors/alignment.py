"""The penalised alignment of Algorithm 2 for blocks of any size."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def aligned_score(scores: NDArray[np.float64], block_size: int, beta: float) -> float:
    """D of the paper's Eq. (7): D_t = max(D_{t-1} - beta, D_{t-r} + z_t), D_0 = 0.

    `scores` [n - r + 1] are the z of the blocks that start at each of n tokens.
    """
    best = [-beta * t for t in range(block_size)]
    for t, score in enumerate(scores.tolist(), block_size):
        skipped, kept = best[t - 1] - beta, best[t - block_size] + score
        best.append(kept if kept >= skipped else skipped)
    return best[-1]


def aligned_scores(
    chunks: Iterable[NDArray[np.float64]], block_size: int, beta: float, count: int
) -> NDArray[np.float64]:
    """`aligned_score` of `count` score sequences at once [count].

    The sequences arrive in chunks [positions, count]; the recurrence runs over positions.
    """
    best = [np.full(count, -beta * t) for t in range(block_size)]  # the last r values of D
    skipped = np.empty(count)
    t = block_size
    for chunk in chunks:
        for scores in chunk:
            oldest = best[t % block_size]
            np.subtract(best[(t - 1) % block_size], beta, out=skipped)
            oldest += scores
            np.maximum(oldest, skipped, out=oldest)
            t += 1
    return best[(t - 1) % block_size]
