"""The null tables far into their tails, at lengths between their rows, against fresh samples."""

import math
from functools import partial

import numpy as np

from evaluation.core.aligned_null import Proposal, sample_aligned, tail_bounds
from evaluation.core.false_positives import least_score
from evaluation.core.local_null import sample_best
from evaluation.core.markdown import clopper_pearson, table
from shared.watermark import Watermark
from shared.watermark.detectors.aligned import BETA
from shared.watermark.null_tables import load_null_table

LENGTHS = (38, 137, 396, 1111)
LOG10_P = (-3.0, -4.0, -6.0, -8.0, -12.0)
THETAS = (0.1, 0.2, 0.3, 0.45, 0.65, 0.9)
# Estimates count with this many effective draws and an upper bound within this factor.
DRAWS, ENOUGH, SHARP = 16_384, 200, 1.3
SCAN_TOKENS = 300


def aligned_tail_table(schemes: list[str], block_sizes: list[int], seed: int) -> str:
    """True probability of what the table calls each p-value, over that p-value (at most 1 is sound)."""
    rows = []
    for scheme in schemes:
        for r in block_sizes:
            watermark = Watermark(scheme, r)
            null = load_null_table(watermark.null.name, r)
            if null is None:
                continue
            # By length and level: the sharpest estimate so far, as (relative bound, ratio).
            found = {n: [(SHARP, math.nan)] * len(LOG10_P) for n in LENGTHS}
            for theta in THETAS:
                samples = sample_aligned(watermark, BETA, Proposal(theta, 0.03), LENGTHS, DRAWS, seed + 1000)
                for n, sample in samples.items():
                    scores, estimate, upper, effective = tail_bounds(sample)
                    levels = np.array([null.aligned.log10_p(r, n, float(score)) for score in scores])
                    for column, level in enumerate(LOG10_P):
                        last = np.count_nonzero(levels <= level) - 1
                        if last >= 0 and effective[last] >= ENOUGH:
                            bound = float(upper[last] / estimate[last])
                            ratio = float(estimate[last] / 10.0**level)
                            found[n][column] = min(found[n][column], (bound, ratio))
            rows += [
                [scheme, r, n, *["-" if math.isnan(ratio) else f"{ratio:.2f}" for _, ratio in cells]]
                for n, cells in found.items()
            ]
    return table(["scheme", "r", "tokens", *[f"p = 1e{int(level)}" for level in LOG10_P]], rows)


def scan_tail_table(schemes: list[str], block_sizes: list[int], trials: int, seed: int) -> str:
    """Share of unwatermarked documents of SCAN_TOKENS tokens with a best E-value at most E."""
    rows = []
    for scheme in schemes:
        for r in block_sizes:
            watermark = Watermark(scheme, r)
            null = load_null_table(watermark.null.name, r)
            if null is None:
                continue
            best = sample_best(watermark, "scan", SCAN_TOKENS, trials, seed + 1000)
            cells = []
            for level in (-3.0, -4.0, -5.0, -6.0):
                limit = least_score(partial(null.scan.log10_e, SCAN_TOKENS), level)
                reached = int(np.count_nonzero(best >= limit))
                low, high = clopper_pearson(reached, trials)
                cells.append(f"{reached / trials:.1e} ({low:.1e} to {high:.1e})")
            rows.append([scheme, r, f"{trials:,}", *cells])
    return table(["scheme", "r", "documents", "E = 1e-3", "E = 1e-4", "E = 1e-5", "E = 1e-6"], rows)
