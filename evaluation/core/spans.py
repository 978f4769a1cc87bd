"""Localized detection on simulated documents: one watermarked span among unwatermarked tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.core.generation import document_scores
from evaluation.core.local_null import sample_best
from evaluation.core.markdown import clopper_pearson, mean_interval, table
from evaluation.core.tilting import null_scores
from shared.watermark import Watermark
from shared.watermark.detectors.localized import METHODS, Method, find_peaks
from shared.watermark.detectors.segments import Peak
from shared.watermark.schemes.registry import build_scheme

TOKENS = 10_000
SHORTEST, LONGEST = 100, 400
FALSE_POSITIVE_RATE, NULL_DOCUMENTS = 0.01, 4000
# Blocks to draw from, of a model with more entropy than any span needs.
POOL, POOL_CONFIDENT = 40_000, 0.3


@dataclass(frozen=True)
class Span:
    """Where the watermark is, in tokens [start, end)."""

    start: int
    end: int


def block_pool(watermark: Watermark, mean: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Standardised scores of watermarked blocks, mixed with null scores or left so that their mean is `mean`.

    A block of lower entropy scores like unwatermarked text, so mixing lowers the entropy.
    """
    scores = document_scores(
        build_scheme(watermark.scheme, watermark.parameters),
        watermark.block_size,
        POOL // 100,
        100,
        1,
        POOL_CONFIDENT,
    )
    pool = watermark.standardize(scores).ravel()
    share = mean / pool.mean()
    if share > 1.0:
        raise ValueError(f"the simulated model reaches a mean score of {pool.mean():.2f}, not {mean}")
    return np.where(rng.random(pool.size) < share, pool, null_scores(watermark.null, rng, (pool.size,)))


def document(
    watermark: Watermark, pool: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], Span]:
    """Position scores of a document with one span."""
    r = watermark.block_size
    scores = null_scores(watermark.null, rng, (TOKENS - r + 1,))
    blocks = int(rng.integers(SHORTEST, LONGEST + 1)) // r
    start = int(rng.integers(0, TOKENS - LONGEST))
    scores[start : start + blocks * r : r] = rng.choice(pool, blocks)
    return scores, Span(start, start + blocks * r)


def overlap(peak: Peak, span: Span) -> float:
    """Intersection over union, in tokens."""
    shared = max(0, min(peak.end, span.end) - max(peak.start, span.start))
    return shared / (max(peak.end, span.end) - min(peak.start, span.start))


def best(watermark: Watermark, method: Method, scores: NDArray[np.float64]) -> Peak:
    """The best candidate segment, or an empty one."""
    peaks = find_peaks(watermark, method, scores, lambda _: False)
    return peaks[0] if peaks else Peak(0, 0, 0.0)


def spans_table(schemes: list[str], block_sizes: list[int], mean: float, documents: int, seed: int) -> str:
    """FNR, F1 and mean IoU of both methods at the same measured document FPR."""
    rows = []
    for scheme in schemes:
        for r in block_sizes:
            watermark, rng = Watermark(scheme, r), np.random.default_rng(seed)
            pool = block_pool(watermark, mean * r / 2.0, rng)
            marked = [document(watermark, pool, rng) for _ in range(documents)]
            for method in METHODS:
                null = sample_best(watermark, method, TOKENS, NULL_DOCUMENTS, seed)
                limit = float(np.quantile(null, 1.0 - FALSE_POSITIVE_RATE))
                found = [(best(watermark, method, scores), span) for scores, span in marked]
                rows.append([scheme, r, method, *accuracy_cells(found, limit)])
    return table(["scheme", "r", "method", *ACCURACY], rows)


ACCURACY = ("FNR", "F1", "mean IoU, misses 0", "mean IoU of hits")


def accuracy_cells(found: Sequence[tuple[Peak, Span]], limit: float) -> list[str]:
    """What ACCURACY names, of the best peak of each document with one span; peaks above `limit` count."""
    documents = len(found)
    ious = [overlap(peak, span) for peak, span in found if peak.score > limit and overlap(peak, span) > 0.0]
    misses = documents - len(ious)
    low, high = clopper_pearson(misses, documents, 0.95)
    f1 = 2 * len(ious) / (2 * len(ious) + misses + FALSE_POSITIVE_RATE * documents)
    mean, below, above = mean_interval(np.array(ious + [0.0] * misses))
    return [
        f"{misses / documents:.3f} ({low:.3f} to {high:.3f})",
        f"{f1:.3f}",
        f"{mean:.3f} ({below:.3f} to {above:.3f})",
        f"{np.mean(ious):.3f}",
    ]
