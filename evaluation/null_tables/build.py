"""Build the null tables that ship with the package."""

import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.null_tables.sampling import (
    LANES,
    Proposal,
    WeightedSample,
    rate_curve,
    sample_aligned,
    sample_best,
    tail_bounds,
)
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.detectors.aligned import BETA
from ttmark.shared.watermark.detectors.localized import Method, method_parameters
from ttmark.shared.watermark.null_tables import TABLE_VERSION
from ttmark.shared.watermark.nulls import BinomialNull

log = logging.getLogger(__name__)

TABLES = Path(__file__).resolve().parents[2] / "shared" / "watermark" / "tables"
LONGEST_ALIGNED, LENGTH_RATIO = 10_240, 1.2
LEVEL_STEPS = ((0.3, 4.0, 0.1), (4.0, 8.0, 0.25), (8.0, 12.0, 0.5), (12.0, 20.0, 1.0), (20.0, 61.0, 2.0))
LOG10_LEVELS = [round(-float(level), 2) for step in LEVEL_STEPS for level in np.arange(*step)]
THETAS = (0.0, 0.025, 0.045, 0.075, 0.13, 0.22, 0.37, 0.6, 0.95, 1.5, 2.5)
# A run at theta reaches tails of about exp(-(theta**2) n / 2); further is of no use.
REACH = 17.0
# Few skips fit long texts; many fit short ones, where each remainder of tokens matters.
RARE_SKIPS, MANY_SKIPS, MANY_SKIPS_LENGTH = 0.03, 0.25, 256
DRAWS = 4096
# Effective draws that a threshold must rest on.
ENOUGH = 100
# Bounds within this factor of the estimate support the line beyond them, over this many decades.
SHARP, CHORD_DECADES = 1.4, 2.0
LOCAL_TOKENS = 10_000
LOCAL_DOCUMENTS: dict[Method, int] = {"scan": 4 * LANES, "waterseeker": 3000}


def build_table(watermark: Watermark, seed: int) -> dict[str, Any]:
    """The null table of a watermark's score distribution and block size, ready for JSON."""
    return {
        "version": TABLE_VERSION,
        "null": watermark.null.name,
        "block_size": watermark.block_size,
        "aligned": _aligned(watermark, seed),
        "scan": _local(watermark, "scan", seed),
        "waterseeker": _local(watermark, "waterseeker", seed),
    }


def write_table(watermark: Watermark, seed: int, folder: Path = TABLES) -> Path:
    """Build and write one table; returns its file."""
    path = folder / f"{watermark.null.name}-r{watermark.block_size}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(build_table(watermark, seed), separators=(",", ":")) + "\n", encoding="utf-8")
    log.info("wrote %s", path.name)
    return path


def _aligned(watermark: Watermark, seed: int) -> dict[str, Any]:
    lengths = aligned_lengths(watermark.block_size)
    sampled = {n: np.full(len(LOG10_LEVELS), np.inf) for n in lengths}
    sharp = {n: np.full(len(LOG10_LEVELS), np.inf) for n in lengths}
    for proposal, reach in _proposals(watermark):
        reached = [n for n in lengths if n <= reach]
        samples = sample_aligned(watermark, BETA, proposal, reached, DRAWS, seed)
        for n, sample in samples.items():
            sampled[n] = np.minimum(sampled[n], _thresholds(sample, math.inf))
            sharp[n] = np.minimum(sharp[n], _thresholds(sample, SHARP))
        log.info("aligned %s r=%d %s", watermark.null.name, watermark.block_size, proposal)
    rows = [_extended(np.maximum.accumulate(sampled[n]), sharp[n]) for n in lengths]
    return {
        "beta": BETA,
        "log10_levels": LOG10_LEVELS,
        "lengths": lengths,
        "thresholds": [[round(float(x), 3) for x in row if np.isfinite(x)] for row in rows],
    }


def _proposals(watermark: Watermark) -> Iterator[tuple[Proposal, float]]:
    """The proposals and the longest text each is good for."""
    for theta in THETAS:
        # The moment of an exponential score ends at 1.
        if theta < 1.0 or isinstance(watermark.null, BinomialNull):
            reach = max(16.0, (REACH / theta) ** 2) if theta else math.inf
            yield Proposal(theta, RARE_SKIPS), reach
            yield Proposal(theta, MANY_SKIPS), min(reach, MANY_SKIPS_LENGTH)


def _thresholds(sample: WeightedSample, sharpness: float) -> NDArray[np.float64]:
    """The least score whose upper bound on P(D >= score) meets each level; inf where unknown.

    Only bounds within a factor `sharpness` of the estimate count.
    """
    scores, estimate, upper, effective = tail_bounds(sample)
    usable = (effective >= ENOUGH) & (upper <= sharpness * estimate)
    scores, upper = scores[usable], np.maximum.accumulate(upper[usable])
    last = np.searchsorted(upper, 10.0 ** np.array(LOG10_LEVELS), side="right") - 1
    if scores.size == 0:
        return np.full(last.size, np.inf)
    return np.where(last >= 0, scores[np.maximum(last, 0)], np.inf)


def _extended(sampled: NDArray[np.float64], sharp: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thresholds with a straight line in log p beyond the last sharp one, where that is lower.

    ln P(D >= x) is concave in its tail, so its chord, a tenth flatter, lies above its continuation.
    """
    levels = np.array(LOG10_LEVELS)
    known = np.flatnonzero(np.isfinite(sharp))
    if known.size == 0:
        return sampled
    last = int(known[-1])
    base = int(np.argmin(np.abs(levels - (levels[last] + CHORD_DECADES))))
    rise = sharp[last] - sampled[base]
    if not np.isfinite(rise) or rise <= 0.0 or levels[base] - levels[last] < CHORD_DECADES / 2.0:
        return sampled
    slope = 0.9 * (levels[base] - levels[last]) / rise
    line = sharp[last] + (levels[last] - levels) / slope
    return np.where(np.arange(levels.size) > last, np.minimum(sampled, line), sampled)


def aligned_lengths(block_size: int) -> list[int]:
    """Geometric numbers of blocks, each with every remainder of tokens."""
    blocks, most = [1], LONGEST_ALIGNED // block_size
    while blocks[-1] < most:
        blocks.append(min(most, max(blocks[-1] + 1, round(blocks[-1] * LENGTH_RATIO))))
    return sorted(block_size * count + rest for count in blocks for rest in range(block_size))


def _local(watermark: Watermark, method: Method, seed: int) -> dict[str, Any]:
    best = sample_best(watermark, method, LOCAL_TOKENS, LOCAL_DOCUMENTS[method], seed)
    scores, rates, decay = rate_curve(best, LOCAL_TOKENS, method)
    log.info("%s %s r=%d decay=%.4f", method, watermark.null.name, watermark.block_size, decay)
    return {
        "parameters": method_parameters(method, watermark.block_size),
        "scores": [round(score, 4) for score in scores],
        "log10_rates": [round(rate, 4) for rate in rates],
        "decay": round(decay, 5),
    }
