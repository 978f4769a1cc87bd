"""The nulls of the localized detectors: best segment scores of simulated unwatermarked documents."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from evaluation.core.tilting import null_scores
from shared.watermark.detectors.localized import Method
from shared.watermark.detectors.scan import best_scores
from shared.watermark.detectors.waterseeker import CHUNK_SCORES, best_window_scores
from shared.watermark.watermark import Watermark

LANES = 16384
CHUNK_POSITIONS = 16
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
            best_scores(_chunks(watermark, positions, rng), watermark.block_size, LANES)
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


def _chunks(watermark: Watermark, positions: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    for start in range(0, positions, CHUNK_POSITIONS):
        yield null_scores(watermark.null, rng, (min(CHUNK_POSITIONS, positions - start), LANES))
