"""The penalised alignment of Algorithm 2 for blocks of any size."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.pauses import STEPS, pause, paused_ranges

# Sequences from which on a step of all of them in numpy costs less than a step of each in Python.
_TOGETHER = 24


def aligned_score(scores: NDArray[np.float64], block_size: int, beta: float) -> float:
    """D of the paper's Eq. (7): D_t = max(D_{t-1} - beta, D_{t-r} + z_t), D_0 = 0.

    `scores` [n - r + 1] are the z of the blocks that start at each of n tokens.
    """
    return _best(scores, block_size, beta)[-1]


def alignment_path(scores: NDArray[np.float64], block_size: int, beta: float) -> NDArray[np.int64]:
    """The blocks that the best alignment keeps (paper, Algorithm 2, followed backwards).

    `scores` [positions] are those of the blocks that start at each position; the result [blocks]
    are positions, ascending and at least `block_size` apart.
    """
    best = _best(scores, block_size, beta)
    path = []
    t = len(best) - 1
    while t >= block_size:
        pause()
        low = max(block_size, t - STEPS)
        while t >= low:
            if best[t] == best[t - block_size] + float(scores[t - block_size]):
                t -= block_size
                path.append(t)
            else:
                t -= 1
    return np.array(path[::-1], dtype=np.int64)


def _before_blocks(block_size: int, beta: float) -> list[float]:
    """D of the first r positions, where no block has ended."""
    return [-beta * t for t in range(block_size)]


def _best(scores: NDArray[np.float64], block_size: int, beta: float) -> list[float]:
    """Eq. (7) for one sequence: D of all n positions."""
    best = _before_blocks(block_size, beta)
    for first, stop in paused_ranges(0, scores.size):
        for t, score in enumerate(scores[first:stop].tolist(), block_size + first):
            skipped, kept = best[t - 1] - beta, best[t - block_size] + score
            best.append(kept if kept >= skipped else skipped)
    return best


def aligned_score_of_each(scores: NDArray[np.float64], block_size: int, beta: float) -> NDArray[np.float64]:
    """`aligned_score` of each of the sequences [S, positions], of at least one position, to the bit: [S]."""
    if len(scores) < _TOGETHER:
        return np.array([aligned_score(own, block_size, beta) for own in scores])
    pause()
    return aligned_scores([scores.T], block_size, beta, len(scores))


def aligned_scores(
    chunks: Iterable[NDArray[np.float64]], block_size: int, beta: float, count: int
) -> NDArray[np.float64]:
    """`aligned_score` of `count` score sequences at once [count].

    The sequences arrive in chunks [positions, count]; the recurrence runs over positions.
    """
    best = [
        np.full(count, before) for before in _before_blocks(block_size, beta)
    ]  # D of the last r positions
    skipped, t = np.empty(count), block_size
    for chunk in chunks:
        for scores in chunk:
            oldest = best[t % block_size]
            np.subtract(best[(t - 1) % block_size], beta, out=skipped)
            oldest += scores
            np.maximum(oldest, skipped, out=oldest)
            t += 1
    return best[(t - 1) % block_size]
