"""False positives of pools of keys: the best of all keys times their number, on unwatermarked texts."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.core.rates import Count
from ttmark.evaluation.core.texts import unwatermarked
from ttmark.shared.watermark import Watermark, scored_positions
from ttmark.shared.watermark.detectors.aligned import BETA, aligned_null
from ttmark.shared.watermark.detectors.alignment import aligned_scores
from ttmark.shared.watermark.detectors.localized import METHODS, segment_null
from ttmark.shared.watermark.detectors.positions import PositionRows
from ttmark.shared.watermark.detectors.scan import best_scores
from ttmark.shared.watermark.detectors.segments import log10_family
from ttmark.shared.watermark.detectors.tokens import context_and_block
from ttmark.shared.watermark.detectors.waterseeker import best_window_scores
from ttmark.shared.watermark.pool_scores import scores_under_each

LEVELS = (1e-2, 1e-3, 1e-4)
POOLS = (16, 256)
KEYS = max(POOLS)
"""Of each text; a smaller pool is tried on every run of them."""

Best = dict[str, NDArray[np.float64]]
"""log10 p under each key [KEYS], by detector."""


def pool_counts(watermarks: Sequence[Watermark], texts: int, seed: int) -> Iterator[Count]:
    """One count for each watermark, detector and pool."""
    for watermark in watermarks:
        rng = np.random.default_rng(seed)
        found: dict[tuple[str, int], list[float]] = defaultdict(list)
        for _, tokens in unwatermarked(texts, rng):
            keys = [rng.bytes(16) for _ in range(KEYS)]
            for detector, log10_p in log10_p_of_each(watermark, keys, tokens).items():
                for pool in POOLS:
                    best = log10_p.reshape(-1, pool).min(axis=1) + math.log10(pool)
                    found[detector, pool] += best.tolist()
        for (detector, pool), values in found.items():
            hits = [int(np.count_nonzero(np.array(values) <= math.log10(level))) for level in LEVELS]
            yield Count(watermark.scheme, watermark.block_size, detector, f"K = {pool}", len(values), hits)


def log10_p_of_each(watermark: Watermark, keys: Sequence[bytes], tokens: NDArray[np.int64]) -> Best:
    """Of every detector under each key; null tables or decoys as in detection."""
    rows = PositionRows.of(watermark, tokens)
    positions = len(rows.blocks)
    if positions == 0:
        return {name: np.zeros(len(keys)) for name in ("direct", "aligned", *METHODS)}
    starts = scored_positions(tokens, watermark.block_size, watermark.context_width)
    blocks = context_and_block(watermark, tokens, starts)
    totals = np.concatenate([s.sum(axis=1) for _, s in scores_under_each(watermark, keys, *blocks)])
    parts = rows.scores_under_each(watermark, keys, positions * len(keys))
    scores = np.concatenate([part for _, part in parts]).T  # [positions, keys]
    aligned = aligned_null(watermark, keys[0], tokens, positions, BETA)
    d = aligned_scores([scores], watermark.block_size, BETA, len(keys))
    peaks = {
        "scan": best_scores([scores], watermark.block_size, len(keys)),
        "waterseeker": best_window_scores(scores.T, watermark.block_size, watermark.log10_p_of_z_sum),
    }
    nulls = {method: segment_null(watermark, method, keys[0], tokens, positions) for method in METHODS}
    return {
        "direct": np.array([watermark.log10_p_value(total, len(starts)) for total in totals]),
        "aligned": np.array([aligned.log10_p(score) for score in d]),
        **{
            method: np.array([log10_family(nulls[method].log10_e(score)) for score in peaks[method]])
            for method in METHODS
        },
    }
