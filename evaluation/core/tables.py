"""Build the null tables that ship with the package."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.core.aligned_null import Proposal, WeightedSample, sample_aligned, tail_bounds
from evaluation.core.local_null import LANES, rate_curve, sample_best
from shared.watermark import Watermark
from shared.watermark.detectors.aligned import BETA
from shared.watermark.detectors.localized import Method, method_parameters
from shared.watermark.null_tables import TABLE_VERSION
from shared.watermark.nulls import BinomialNull

log = logging.getLogger(__name__)

TABLES = Path(__file__).parents[2] / "shared" / "watermark" / "tables"
LONGEST_ALIGNED, LENGTH_RATIO = 10_240, 1.2
LEVEL_STEPS = ((0.3, 4.0, 0.1), (4.0, 8.0, 0.25), (8.0, 12.0, 0.5), (12.0, 20.0, 1.0), (20.0, 61.0, 2.0))
LOG10_LEVELS = [round(-float(level), 2) for step in LEVEL_STEPS for level in np.arange(*step)]
THETAS = (0.0, 0.025, 0.045, 0.075, 0.13, 0.22, 0.37, 0.6, 0.95, 1.5, 2.5)
# A run at theta reaches tails of about exp(-(theta**2) n / 2); further is of no use.
REACH = 17.0
# Few skips fit long texts; many fit short ones, where each remainder of tokens matters.
RARE_SKIPS, MANY_SKIPS, MANY_SKIPS_LENGTH = 0.03, 0.25, 256
DRAWS = 8192
# Effective draws that a threshold must rest on.
ENOUGH = 100
LOCAL_TOKENS = 10_000
LOCAL_DOCUMENTS: dict[Method, int] = {"scan": 8 * LANES, "waterseeker": 8000}


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


def write_table(watermark: Watermark, seed: int) -> Path:
    """Build and write one table; returns its file."""
    path = TABLES / f"{watermark.null.name}-r{watermark.block_size}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(build_table(watermark, seed), separators=(",", ":")) + "\n", encoding="utf-8")
    log.info("wrote %s", path.name)
    return path


def _aligned(watermark: Watermark, seed: int) -> dict[str, Any]:
    lengths = aligned_lengths(watermark.block_size)
    thresholds = {n: np.full(len(LOG10_LEVELS), np.inf) for n in lengths}
    for proposal, reach in _proposals(watermark):
        reached = [n for n in lengths if n <= reach]
        samples = sample_aligned(watermark, BETA, proposal, reached, DRAWS, seed)
        for n, sample in samples.items():
            thresholds[n] = np.minimum(thresholds[n], _thresholds(sample))
        log.info("aligned %s r=%d %s", watermark.null.name, watermark.block_size, proposal)
    rows = [np.maximum.accumulate(thresholds[n]) for n in lengths]
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
            reach = max(16.0, (REACH / theta) ** 2) if theta else LONGEST_ALIGNED
            yield Proposal(theta, RARE_SKIPS), min(reach, LONGEST_ALIGNED)
            yield Proposal(theta, MANY_SKIPS), min(reach, MANY_SKIPS_LENGTH)


def _thresholds(sample: WeightedSample) -> NDArray[np.float64]:
    """The least score whose upper bound on P(D >= score) meets each level; inf where unknown."""
    scores, _, upper, effective = tail_bounds(sample)
    usable = effective >= ENOUGH
    scores, upper = scores[usable], np.maximum.accumulate(upper[usable])
    last = np.searchsorted(upper, 10.0 ** np.array(LOG10_LEVELS), side="right") - 1
    if scores.size == 0:
        return np.full(last.size, np.inf)
    return np.where(last >= 0, scores[np.maximum(last, 0)], np.inf)


def aligned_lengths(block_size: int) -> list[int]:
    """Geometric numbers of blocks, each with every remainder of tokens."""
    blocks = {1}
    while max(blocks) * block_size < LONGEST_ALIGNED:
        blocks.add(max(max(blocks) + 1, round(max(blocks) * LENGTH_RATIO)))
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
