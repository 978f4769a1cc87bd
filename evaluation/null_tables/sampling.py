"""Draws of unwatermarked texts' aligned and localized scores, far into their tails."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.null_tables.tilting import null_chunks, null_scores, tilted
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.detectors.localized import Method
from ttmark.shared.watermark.detectors.scan import best_scores
from ttmark.shared.watermark.detectors.waterseeker import CHUNK_SCORES, best_window_scores


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


LANES = 16384
CONFIDENCE = 0.999
POINTS_PER_DECADE = 20
# The share of the highest scores that fits the tail, and how many end the grid.
FITTED, SHOWN = {"scan": 0.02, "waterseeker": 0.1}, 50


def sample_best(
    watermark: Watermark, method: Method, tokens: int, documents: int, seed: int
) -> NDArray[np.float64]:
    """Best segment score of each of `documents` unwatermarked documents of `tokens` scored tokens."""
    rng = np.random.default_rng(seed)
    positions = tokens - watermark.block_size + 1
    if method == "scan":
        runs = [
            best_scores(null_chunks(watermark.null, positions, LANES, rng), watermark.block_size, LANES)
            for _ in range(-(-documents // LANES))
        ]
        return np.concatenate(runs)[:documents]
    rows = max(1, CHUNK_SCORES // positions)
    runs = [
        best_window_scores(
            null_scores(watermark.null, rng, (min(rows, documents - start), positions)),
            watermark.block_size,
            watermark.log10_p_of_z_sum,
        )
        for start in range(0, documents, rows)
    ]
    return np.concatenate(runs)


def rate_curve(
    best: NDArray[np.float64], tokens: int, method: Method
) -> tuple[list[float], list[float], float]:
    """Scores, log10 of their rates per token with an upper confidence bound, and the tail's decay.

    The decay is that of the exponential excesses over a high quantile, three standard errors down.
    """
    from scipy.stats import beta  # optional: `--help` works without it

    ordered = np.sort(best)[::-1]
    documents = ordered.size
    values, counts = np.unique(ordered, return_counts=True)
    reached = np.cumsum(counts[::-1])[::-1]  # documents with at least each value
    scores: list[float] = []
    rates: list[float] = []
    for value, count in zip(values, reached, strict=True):
        upper = float(beta.ppf(CONFIDENCE, count + 1, documents - count)) if count < documents else 1.0
        expected = -np.log1p(-min(upper, 1.0 - 1e-12))
        rate = float(np.log10(expected / tokens))
        if count < SHOWN:
            break
        if not rates or rate <= rates[-1] - 1.0 / POINTS_PER_DECADE:
            scores.append(float(value))
            rates.append(rate)
    limit = ordered[int(FITTED[method] * documents)]
    excess = ordered[ordered > limit] - limit
    decay = (1.0 - 3.0 / np.sqrt(excess.size)) / excess.mean() / np.log(10.0)
    return scores, rates, float(decay)
