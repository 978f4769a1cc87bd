"""Measured against promised false-positive rates on simulated scores of unwatermarked text."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.core.rate_tables import Count, rate_cell
from ttmark.evaluation.null_tables.sampling import sample_best
from ttmark.evaluation.null_tables.tilting import null_chunks
from ttmark.evaluation.report.result import Table, table_of
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.detectors.alignment import BETA, aligned_scores
from ttmark.shared.watermark.detectors.localized import Method
from ttmark.shared.watermark.detectors.segments import log10_family
from ttmark.shared.watermark.null_tables import LocalNull, NullTable

DIRECT_LEVELS = (1e-3, 1e-4, 1e-5, 1e-6)
SEARCH_LEVELS = (1e-2, 1e-3, 1e-4)
BLOCKS = (4, 20, 98)
CHUNK = 1 << 18
LANES = 8192
# Share of the trials that each length gets: the long ones are dear.
SHARES = {50: 0.5, 200: 0.3, 1000: 0.14, 5000: 0.04, 10_000: 0.02}

log = logging.getLogger(__name__)


def direct_table(schemes: Sequence[str], trials: int, seed: int) -> Table:
    """Exact tails of sums of scores; `trials` texts over all schemes and lengths."""
    rows = []
    for scheme in schemes:
        for blocks in BLOCKS:
            watermark, rng = Watermark(scheme, 2), np.random.default_rng(seed)
            limits = [_least_total(watermark, blocks, level) for level in DIRECT_LEVELS]
            found, done = np.zeros(len(limits), dtype=int), 0
            while done < trials // (len(schemes) * len(BLOCKS)):
                totals = np.zeros(CHUNK)
                for _ in range(blocks):
                    totals += watermark.null.draw(rng.integers(0, 2**64, CHUNK, dtype=np.uint64))
                found += [int(np.count_nonzero(totals >= limit)) for limit in limits]
                done += CHUNK
            cells = [
                rate_cell(int(hits), done, level) for hits, level in zip(found, DIRECT_LEVELS, strict=True)
            ]
            rows.append([scheme, blocks, f"{done:,}", *cells])
    columns = ["scheme", "scored blocks", "trials", *[f"at {level:g}" for level in DIRECT_LEVELS]]
    return table_of("False positives of direct detection", columns, rows)


def search_counts(
    schemes: Sequence[str], block_sizes: Sequence[int], trials: int, window_trials: int, seed: int
) -> Iterator[Count]:
    """Aligned and localized detection from null tables on simulated scores of unwatermarked text.

    `trials` texts per watermark for aligned and scan, `window_trials` for WaterSeeker, over the lengths.
    """
    for watermark, null in with_tables(schemes, block_sizes):
        scheme, block_size = watermark.scheme, watermark.block_size
        for length, share in SHARES.items():
            tokens = length - watermark.context_width
            sizes = math.ceil(trials * share), math.ceil(window_trials * share)
            for name, scores, log10_p in _detectors(watermark, null, tokens, *sizes, seed):
                limits = [least_score(log10_p, math.log10(level)) for level in SEARCH_LEVELS]
                hits = [int(np.count_nonzero(scores >= limit)) for limit in limits]
                yield Count(scheme, block_size, name, f"{length:,} tokens", scores.size, hits)
            log.info("%s r=%d %d tokens", scheme, block_size, length)


def with_tables(schemes: Sequence[str], block_sizes: Sequence[int]) -> Iterator[tuple[Watermark, NullTable]]:
    """The watermarks with their null tables.

    Raises:
        FileNotFoundError: there is none for one of them.
    """
    for scheme, block_size in product(schemes, block_sizes):
        watermark = Watermark(scheme, block_size)
        null = watermark.null_table()
        if null is None:
            raise FileNotFoundError(f"no null table for {scheme}, r = {block_size}")
        yield watermark, null


Detector = tuple[str, NDArray[np.float64], Callable[[float], float]]


def _detectors(
    watermark: Watermark, null: NullTable, tokens: int, count: int, window_count: int, seed: int
) -> Iterator[Detector]:
    """Scores of unwatermarked texts and their p-value, for each detector; WaterSeeker has its own count."""
    runs, positions = -(-count // LANES), tokens - watermark.block_size + 1
    rng = np.random.default_rng(seed)
    aligned = [
        aligned_scores(null_chunks(watermark.null, positions, LANES, rng), watermark.block_size, BETA, LANES)
        for _ in range(runs)
    ]
    yield "aligned", np.concatenate(aligned), lambda score: aligned_p(watermark, null, tokens, score)
    localized: tuple[tuple[Method, LocalNull, int], ...] = (
        ("scan", null.scan, runs * LANES),
        ("waterseeker", null.waterseeker, window_count),
    )
    for method, local, documents in localized:
        best = sample_best(watermark, method, tokens, documents, seed)
        yield method, best, partial(local_p, local, tokens)


def local_p(null: LocalNull, tokens: int, score: float) -> float:
    """log10 of the p-value of a document whose best segment has this score."""
    return log10_family(null.log10_e(tokens, score))


def aligned_p(watermark: Watermark, null: NullTable, tokens: int, score: float) -> float:
    """log10 of the p-value of D over so many tokens. Raises ValueError where the table has no row."""
    log10_p = null.aligned.log10_p(watermark.block_size, tokens, score)
    if log10_p is None:
        raise ValueError(f"the null table does not cover {tokens} tokens")
    return log10_p


def _least_total(watermark: Watermark, blocks: int, level: float) -> float:
    def log10_p(total: float) -> float:
        return watermark.log10_p_value(total, blocks)

    return least_score(log10_p, math.log10(level), blocks * watermark.null.maximum)


def least_score(log10_p: Callable[[float], float], level: float, high: float = 1e5) -> float:
    """The smallest score whose p-value meets the level, by bisection."""
    low = -1e3
    while high - low > 1e-7:
        middle = (low + high) / 2.0
        low, high = (low, middle) if log10_p(middle) <= level else (middle, high)
    return high
