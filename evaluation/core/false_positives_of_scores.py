"""Measured against promised false-positive rates, on simulated scores of texts without the mark."""

import logging
import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.intervals import clopper_pearson
from ttmark.evaluation.report.result import Table, table_of
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.likelihood.evidence import log10_of_evidence
from ttmark.shared.watermark.likelihood.forward_backward import find_passes
from ttmark.shared.watermark.likelihood.importance_sampling import NullTail, gate
from ttmark.shared.watermark.likelihood.rows import Chain, Ratios, as_table, evidence_paths

DIRECT_LEVELS = (1e-3, 1e-4, 1e-5, 1e-6)
BLOCKS = (4, 20, 98)
CHUNK = 1 << 18
LIKELIHOOD_LEVELS = (1e-2, 1e-3, 1e-4, 1e-5)
LENGTHS = (50, 200, 1_000)
SETS = 24
"""Texts of a cell: each has draws of its own, and its share of the trials as wrong keys."""
ROWS = 20_000

log = logging.getLogger(__name__)


def lower_bound(hits: int, trials: int) -> float:
    """The lower 99 % Clopper-Pearson bound of a rate."""
    return clopper_pearson(hits, trials, 0.99).low


def rate_cell(hits: int, trials: int, level: float) -> str:
    """Measured rate, and a mark where even its lower 99 % bound exceeds the promise."""
    return f"{hits / trials:.2e}" + (" **above**" if lower_bound(hits, trials) > level else "")


def direct_table(schemes: Sequence[str], trials: int, seed: int) -> Table:
    """Exact tails of sums of scores; `trials` texts over all schemes and lengths."""
    rows = []
    for scheme, blocks in product(schemes, BLOCKS):
        watermark, rng = Watermark(scheme, 2), np.random.default_rng(seed)
        limits = [_least_total(watermark, blocks, level) for level in DIRECT_LEVELS]
        found, done = np.zeros(len(limits), dtype=int), 0
        while done < trials // (len(schemes) * len(BLOCKS)):
            totals = np.zeros(CHUNK)
            for _ in range(blocks):
                totals += watermark.null.draw(rng.integers(0, 2**64, CHUNK, dtype=np.uint64))
            found += [int(np.count_nonzero(totals >= limit)) for limit in limits]
            done += CHUNK
        cells = [rate_cell(int(hits), done, level) for hits, level in zip(found, DIRECT_LEVELS, strict=True)]
        rows.append([scheme, blocks, f"{done:,}", *cells])
    columns = ["scheme", "scored blocks", "trials", *[f"at {level:g}" for level in DIRECT_LEVELS]]
    return table_of("False positives of direct detection", columns, rows)


def _least_total(watermark: Watermark, blocks: int, level: float) -> float:
    def log10_p(total: float) -> float:
        return watermark.log10_p_value(total, blocks)

    return least_score(log10_p, math.log10(level), blocks * watermark.null.maximum)


def least_score(log10_p: Callable[[float], float], level: float, high: float) -> float:
    """The smallest score whose p-value meets the level, by bisection."""
    low = -1e3
    while high - low > 1e-7:
        middle = (low + high) / 2.0
        low, high = (low, middle) if log10_p(middle) <= level else (middle, high)
    return high


def likelihood_table(schemes: Sequence[str], block_sizes: Sequence[int], trials: int, seed: int) -> Table:
    """How often the likelihood ratio finds text without the mark at each level, `trials` wrong keys a cell.

    Without a reader; the p-value is drawn for where detection draws for it.
    """
    rows = []
    for scheme, size, tokens in product(schemes, block_sizes, LENGTHS):
        watermark = Watermark(scheme, size)
        positions = tokens - watermark.context_width - size + 1
        paths = as_table(evidence_paths(by_surprise=False))
        chain = Chain.plain(Ratios.of(watermark), positions, paths, size)
        keys = math.ceil(trials / SETS)
        hits = np.array([_found(chain, keys, seed * SETS + number) for number in range(SETS)])
        done = keys * SETS
        found = list(zip(hits.sum(axis=0).tolist(), LIKELIHOOD_LEVELS, strict=True))
        shares = ", ".join(f"{count / done / level:.2f}" for count, level in found)
        spread = hits[:, 0] / keys / LIKELIHOOD_LEVELS[0]
        rates = [rate_cell(count, done, level) for count, level in found]
        spread_text = f"{spread.min():.2f} to {spread.max():.2f}"
        rows.append([scheme, size, tokens, f"{done:,}", *rates, shares, spread_text])
        log.info("%s r=%d %d tokens: %s", scheme, size, tokens, shares)
    columns = ["scheme", "r", "tokens", "wrong keys", *[f"at {level:g}" for level in LIKELIHOOD_LEVELS]]
    columns += ["over the promise", f"text by text, at {LIKELIHOOD_LEVELS[0]:g}"]
    return table_of("False positives of the likelihood ratio", columns, rows)


def _found(chain: Chain, keys: int, seed: int) -> NDArray[np.int64]:
    """Of wrong keys of one text, how many find it at each level [levels]."""
    passes = find_passes()
    tails = [NullTail.draw(passes, chain, math.log10(level), seed) for level in LIKELIHOOD_LEVELS]
    hits = np.zeros(len(LIKELIHOOD_LEVELS), dtype=np.int64)
    for first in range(0, keys, ROWS):
        # Other numbers than those of draws and pilots.
        unmarked = np.full(min(ROWS, keys - first), -1)
        cells = passes.draw(chain, seed + 1_000_003, (1 << 50) + first, unmarked)
        log10_e = log10_of_evidence(passes, chain, cells)
        for number, (tail, level) in enumerate(zip(tails, LIKELIHOOD_LEVELS, strict=True)):
            close = log10_e >= gate(-math.log10(level))
            hits[number] += np.count_nonzero(-log10_e[~close] <= math.log10(level))
            if close.any():
                hits[number] += np.count_nonzero(tail.log10_p(cells[close]) <= math.log10(level))
    return hits
