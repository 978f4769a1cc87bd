"""The null of the aligned score D far into its tail, by importance sampling over alignments.

A random alignment (each step skips a token with probability rho, else keeps a block) is drawn and
the scores on it are tilted by theta. The likelihood ratio of the scores sums over all alignments by
the same recurrence as D, with sums for maxima: the estimate of P(D >= x) is unbiased for any proposal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.core.tilting import null_scores, tilted
from shared.watermark import Watermark


@dataclass(frozen=True)
class Proposal:
    """Tilt of the scores on the drawn alignment, and its chance to skip a token."""

    theta: float
    rho: float


@dataclass(frozen=True)
class WeightedSample:
    """Values of D with importance weights, for one length."""

    scores: NDArray[np.float64]
    weights: NDArray[np.float64]


def sample_aligned(
    watermark: Watermark, beta: float, proposal: Proposal, lengths: Sequence[int], count: int, seed: int
) -> dict[int, WeightedSample]:
    """`count` weighted draws of D for each number of tokens in `lengths`, all from one run."""
    rng = np.random.default_rng(seed)
    null, block_size = watermark.null, watermark.block_size
    theta, rho = proposal.theta, proposal.rho
    moved = tilted(null, theta)
    wanted, longest = set(lengths), max(lengths)
    # Rings of the last r values, by token number modulo r: D, and the weight of all alignments.
    best = [np.full(count, -beta * t) for t in range(block_size)]
    mass = [np.full(count, rho**t) for t in range(block_size)]
    boundary = np.zeros(count, dtype=np.int64)  # the next boundary of each drawn alignment
    samples = {}
    for start in range(longest - block_size + 1):
        scores = null_scores(null, rng, (count,))
        at_boundary = np.flatnonzero(boundary == start)
        kept = at_boundary[rng.random(at_boundary.size) >= rho]
        scores[kept] = moved.draw(rng, kept.size)
        boundary[at_boundary] += 1
        boundary[kept] += block_size - 1
        end = start + block_size
        slot, previous = end % block_size, (end - 1) % block_size
        best[slot] = np.maximum(best[slot] + scores, best[previous] - beta)
        grown = mass[slot] * np.exp(theta * scores - moved.log_moment)
        mass[slot] = (1.0 - rho) * grown + rho * mass[previous]
        if end in wanted:
            inside = sum((mass[(end - j) % block_size] for j in range(1, block_size)), np.zeros(count))
            samples[end] = WeightedSample(best[slot].copy(), 1.0 / (mass[slot] + (1.0 - rho) * inside))
    return samples


def tail_bounds(sample: WeightedSample) -> tuple[NDArray[np.float64], ...]:
    """Falling distinct scores x, P(D >= x), its upper bound at three standard errors, sample size.

    The last is Kish's effective number of draws above x.
    """
    order = np.argsort(-sample.scores, kind="stable")
    # Squared weights of far tails underflow doubles.
    scores, weights = sample.scores[order], sample.weights[order].astype(np.longdouble)
    last = np.append(np.diff(scores) < -1e-9, True)  # after all draws of one value
    total, square = np.cumsum(weights)[last], np.cumsum(weights**2)[last]
    count = sample.scores.size
    probability = total / count
    error = np.sqrt(np.maximum(square / count - probability**2, 0.0) / count)
    return scores[last], probability, probability + 3.0 * error, total**2 / square
