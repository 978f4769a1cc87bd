"""The penalised alignment of Algorithm 2 for blocks of any size."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

# Sequences from which on a step of all of them in numpy costs less than a step of each in Python.
_TOGETHER = 24


def aligned_score(scores: NDArray[np.float64], block_size: int, beta: float) -> float:
    """D of the paper's Eq. (7): D_t = max(D_{t-1} - beta, D_{t-r} + z_t), D_0 = 0.

    `scores` [n - r + 1] are the z of the blocks that start at each of n tokens.
    """
    return _continued([-beta * t for t in range(block_size)], scores, block_size, beta)


def _continued(best: list[float], scores: NDArray[np.float64], block_size: int, beta: float) -> float:
    """The last D, from the r values of D before the first of `scores`."""
    for t, score in enumerate(scores.tolist(), block_size):
        skipped, kept = best[t - 1] - beta, best[t - block_size] + score
        best.append(kept if kept >= skipped else skipped)
    return best[-1]


def aligned_score_of_each(
    scores: NDArray[np.float64], ends: NDArray[np.int64], block_size: int, beta: float
) -> NDArray[np.float64]:
    """`aligned_score` of sequences [S] of any lengths of at least 1, to the bit.

    `scores` [N] holds one sequence after the other; sequence i ends before `ends[i]`. The recurrence
    runs over positions, all sequences that are long enough at once.
    """
    starts = np.concatenate([ends[:1] * 0, ends[:-1]])
    order = np.argsort(starts - ends, kind="stable")  # the longest first
    starts, lengths = starts[order], (ends - starts)[order]
    result = np.empty(ends.size)
    best = [np.full(ends.size, -beta * t) for t in range(block_size)]  # the last r values of D
    skipped = np.empty(ends.size)
    done, active = 0, ends.size
    while active >= _TOGETHER:
        stop = int(lengths[active - 1])
        last = [values[:active] for values in best]
        for row in scores[starts[:active] + np.arange(done, stop)[:, None]]:  # [active]
            oldest = last[done % block_size]
            np.subtract(last[(done - 1) % block_size], beta, out=skipped[:active])
            oldest += row
            np.maximum(oldest, skipped[:active], out=oldest)
            done += 1
        remaining = int(np.count_nonzero(lengths > stop))
        result[order[remaining:active]] = last[(done - 1) % block_size][remaining:]
        active = remaining
    for i in range(active):
        state = [float(best[(done + t) % block_size][i]) for t in range(block_size)]
        rest = scores[starts[i] + done : starts[i] + lengths[i]]
        result[order[i]] = _continued(state, rest, block_size, beta)
    return result


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
