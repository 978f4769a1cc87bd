"""The settings of `scan` against others, and against an oracle that knows the scores of the watermark."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.core.markdown import table
from evaluation.core.spans import (
    ACCURACY,
    FALSE_POSITIVE_RATE,
    TOKENS,
    Span,
    accuracy_cells,
    block_pool,
    document,
)
from evaluation.core.tilting import null_scores
from shared.watermark import Watermark
from shared.watermark.detectors.scan import SKIP, best_peak, best_scores, sharpened
from shared.watermark.detectors.segments import Peak

Scores = NDArray[np.float64]
DRIFTS, SKIPS, NEVER = (0.2, 0.25, 0.3, 0.35, 0.4), (3.0, 8.0), 1e9
DEFAULT_DRIFT = 0.3
# A lucky block counts no more than this many deviations.
CAP, CAPPED_DRIFTS = 3.0, (0.2, 0.3)
NULL_DOCUMENTS, CHUNK = 2000, 100
BINS, TRAINING = 64, 200_000


def tuning_table(schemes: list[str], mean: float, documents: int, seed: int) -> str:
    """FNR, F1 and IoU at the measured document FPR by drift and skip of a pair; r = 2."""
    rows = []
    settings = [(drift, SKIP) for drift in DRIFTS] + [(DEFAULT_DRIFT, skip) for skip in (*SKIPS, NEVER)]
    for scheme in schemes:
        watermark, rng = Watermark(scheme, 2), np.random.default_rng(seed)
        pool = block_pool(watermark, mean, rng)
        marked = [document(watermark, pool, rng) for _ in range(documents)]
        for drift, skip in settings:
            cells = _accuracy(watermark, marked, lambda scores: scores, drift, skip, seed)
            price = "never" if skip == NEVER else f"{skip:g}"
            rows.append([scheme, f"drift {drift:g}, skip {price}", *cells])
        for drift in CAPPED_DRIFTS:
            cells = _accuracy(watermark, marked, lambda scores: np.minimum(scores, CAP), drift, SKIP, seed)
            rows.append([scheme, f"drift {drift:g}, skip {SKIP:g}, scores capped at {CAP:g}", *cells])
        oracle = _log_likelihood_ratio(watermark, pool, rng)
        cells = _accuracy(watermark, marked, oracle, DEFAULT_DRIFT, NEVER, seed)
        rows.append([scheme, "oracle: log-likelihood ratio, no skips", *cells])
    return table(["scheme", "settings of a pair", *ACCURACY], rows)


def _accuracy(
    watermark: Watermark,
    marked: Sequence[tuple[Scores, Span]],
    transform: Callable[[Scores], Scores],
    drift: float,
    skip: float,
    seed: int,
) -> list[str]:
    rng = np.random.default_rng(seed + 1)
    chunks = (
        transform(null_scores(watermark.null, rng, (min(CHUNK, TOKENS - 1 - start), NULL_DOCUMENTS)))
        for start in range(0, TOKENS - 1, CHUNK)
    )
    null = best_scores(chunks, 2, NULL_DOCUMENTS, drift_per_token=drift / 2, skip=skip)
    limit = float(np.quantile(null, 1.0 - FALSE_POSITIVE_RATE))
    return accuracy_cells(
        [(_peak(transform(scores).tolist(), drift, skip), span) for scores, span in marked], limit
    )


def _peak(values: list[float], drift: float, skip: float) -> Peak:
    return sharpened(values, 2, best_peak(values, 2, drift, 0, TOKENS, skip=skip), drift)


def _log_likelihood_ratio(
    watermark: Watermark, pool: Scores, rng: np.random.Generator
) -> Callable[[Scores], Scores]:
    """ln of the density of the span's scores over the null's, in bins of equal null probability."""
    null = null_scores(watermark.null, rng, (TRAINING,))
    edges = np.unique(np.quantile(null, np.linspace(0.0, 1.0, BINS + 1)[1:-1]))

    def shares(scores: Scores) -> Scores:
        counts = np.bincount(np.searchsorted(edges, scores, side="right"), minlength=edges.size + 1)
        return np.asarray((counts + 1.0) / (scores.size + edges.size + 1.0), dtype=np.float64)

    # The ratio has its own drift; with the default added it stays out of the alignment's score.
    ratios = np.log(shares(pool) / shares(null)) + DEFAULT_DRIFT

    def ratio(scores: Scores) -> Scores:
        values: Scores = ratios[np.searchsorted(edges, scores, side="right")]
        return values

    return ratio
