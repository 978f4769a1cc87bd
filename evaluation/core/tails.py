"""The null tables far into their tails, at lengths between their rows, against fresh samples."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ttmark.evaluation.core.false_positives import least_score, with_tables
from ttmark.evaluation.intervals import clopper_pearson
from ttmark.evaluation.null_tables.sampling import Proposal, sample_aligned, sample_best, tail_bounds
from ttmark.evaluation.report.result import Table, table_of
from ttmark.shared.watermark.detectors.aligned import BETA

LENGTHS = (38, 137, 396, 1111)
LOG10_P = (-3.0, -4.0, -6.0, -8.0, -12.0)
THETAS = (0.1, 0.2, 0.3, 0.45, 0.65, 0.9)
# Estimates count with this many effective draws and an upper bound within this factor.
DRAWS, ENOUGH, SHARP = 16_384, 200, 1.3
SCAN_TOKENS = 300


def aligned_tail_table(schemes: Sequence[str], block_sizes: Sequence[int], seed: int) -> Table:
    """True probability of what the table calls each p-value, over that p-value (at most 1 is sound)."""
    rows = []
    for watermark, null in with_tables(schemes, block_sizes):
        # By length and level: the sharpest estimate so far, as (relative bound, ratio).
        found = {n: [(SHARP, math.nan)] * len(LOG10_P) for n in LENGTHS}
        for theta in THETAS:
            samples = sample_aligned(watermark, BETA, Proposal(theta, 0.03), LENGTHS, DRAWS, seed + 1000)
            for n, sample in samples.items():
                scores, estimate, upper, effective = tail_bounds(sample)
                levels = np.array(
                    [null.aligned.log10_p(watermark.block_size, n, float(score)) for score in scores]
                )
                for column, level in enumerate(LOG10_P):
                    last = np.count_nonzero(levels <= level) - 1
                    if last >= 0 and effective[last] >= ENOUGH:
                        bound = float(upper[last] / estimate[last])
                        ratio = float(estimate[last] / 10.0**level)
                        found[n][column] = min(found[n][column], (bound, ratio))
        rows += [
            [
                watermark.scheme,
                watermark.block_size,
                n,
                *["-" if math.isnan(ratio) else f"{ratio:.2f}" for _, ratio in cells],
            ]
            for n, cells in found.items()
        ]
    return table_of(
        "True p-values over those of the aligned null tables",
        ["scheme", "r", "tokens", *[f"p = 1e{int(level)}" for level in LOG10_P]],
        rows,
    )


def scan_tail_table(schemes: Sequence[str], block_sizes: Sequence[int], trials: int, seed: int) -> Table:
    """Share of unwatermarked documents of SCAN_TOKENS tokens with a best E-value at most E."""
    rows = []
    for watermark, null in with_tables(schemes, block_sizes):
        best = sample_best(watermark, "scan", SCAN_TOKENS, trials, seed + 1000)
        cells = []
        for level in (-3.0, -4.0, -5.0, -6.0):
            limit = least_score(partial(null.scan.log10_e, SCAN_TOKENS), level)
            reached = int(np.count_nonzero(best >= limit))
            interval = clopper_pearson(reached, trials, 0.99)
            cells.append(f"{reached / trials:.1e} ({interval.low:.1e} to {interval.high:.1e})")
        rows.append([watermark.scheme, watermark.block_size, f"{trials:,}", *cells])
    return table_of(
        "Documents with a best E-value of at most E",
        ["scheme", "r", "documents", "E = 1e-3", "E = 1e-4", "E = 1e-5", "E = 1e-6"],
        rows,
    )
