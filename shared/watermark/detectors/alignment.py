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
    return _continued(_before_blocks(block_size, beta), scores, beta)[-1]


def alignment_path(scores: NDArray[np.float64], block_size: int, beta: float) -> NDArray[np.int64]:
    """The blocks that the best alignment keeps (paper, Algorithm 2, followed backwards).

    `scores` [positions] are those of the blocks that start at each position; the result [blocks]
    are positions, ascending and at least `block_size` apart.
    """
    best = _continued(_before_blocks(block_size, beta), scores, beta)
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


def _continued(last: list[float], scores: NDArray[np.float64], beta: float) -> list[float]:
    """Eq. (7) for one sequence: D from the r values `last` before the first of `scores` on, those first."""
    best, block_size = last, len(last)
    for first, stop in paused_ranges(0, scores.size):
        for t, score in enumerate(scores[first:stop].tolist(), block_size + first):
            skipped, kept = best[t - 1] - beta, best[t - block_size] + score
            best.append(kept if kept >= skipped else skipped)
    return best


def _advance(last: list[NDArray[np.float64]], t: int, rows: NDArray[np.float64], beta: float) -> int:
    """Eq. (7) for many sequences at once, from position `t` over `rows` [positions, sequences].

    `last` holds the last r values of D [sequences], that of position t at t mod r, and is kept up to date.
    Gives the position after the rows.
    """
    skipped = np.empty_like(last[0])
    for scores in rows:
        oldest = last[t % len(last)]
        np.subtract(last[(t - 1) % len(last)], beta, out=skipped)
        oldest += scores
        np.maximum(oldest, skipped, out=oldest)
        t += 1
    return t


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
    best = [np.full(ends.size, before) for before in _before_blocks(block_size, beta)]
    done, active = 0, ends.size
    while active >= _TOGETHER:
        pause()
        stop = int(lengths[active - 1])
        last = [values[:active] for values in best]
        done = _advance(last, done, scores[starts[:active] + np.arange(done, stop)[:, None]], beta)
        remaining = int(np.count_nonzero(lengths > stop))
        result[order[remaining:active]] = last[(done - 1) % block_size][remaining:]
        active = remaining
    for i in range(active):
        state = [float(best[(done + t) % block_size][i]) for t in range(block_size)]
        rest = scores[starts[i] + done : starts[i] + lengths[i]]
        result[order[i]] = _continued(state, rest, beta)[-1]
    return result


def aligned_scores(
    chunks: Iterable[NDArray[np.float64]], block_size: int, beta: float, count: int
) -> NDArray[np.float64]:
    """`aligned_score` of `count` score sequences at once [count].

    The sequences arrive in chunks [positions, count]; the recurrence runs over positions.
    """
    best = [np.full(count, before) for before in _before_blocks(block_size, beta)]
    t = block_size
    for chunk in chunks:
        t = _advance(best, t, chunk, beta)
    return best[(t - 1) % block_size]
