"""Build the null tables that ship with the package."""

import json
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.null_tables.sampling import (
    LANES,
    Proposal,
    WeightedSample,
    local_decay,
    local_thresholds,
    sample_aligned,
    sample_growth,
    sample_scan,
    sample_windows,
    tail_bounds,
)
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.detectors.alignment import BETA
from ttmark.shared.watermark.detectors.localized import Method, method_parameters
from ttmark.shared.watermark.detectors.waterseeker import SHORTEST
from ttmark.shared.watermark.null_tables import TABLE_VERSION
from ttmark.shared.watermark.nulls import BinomialNull

log = logging.getLogger(__name__)

Scores = NDArray[np.floating[Any]]

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
# Lengths between which the growth of D is taken, and the documents of each with all its remainders.
GROWTH, GROWTH_DOCUMENTS = (1_020, 10_200), 2 * LANES
LOCAL_LEVEL_STEPS = ((0.0, 4.0, 0.1), (4.0, 6.01, 0.25))
LOCAL_LOG10_LEVELS = [
    round(0.3 - float(level), 2) for step in LOCAL_LEVEL_STEPS for level in np.arange(*step)
]
# Every length up to the first of these, then geometric ones.
DENSE, LONGEST_LOCAL = 24, 10_240
LOCAL_RATIO: dict[Method, float] = {"scan": 1.1, "waterseeker": 1.25}
# Documents of `scan` by the lengths that they serve; of `waterseeker` so many tokens, within limits.
SCAN_DOCUMENTS = {256: 32 * LANES, 2048: 8 * LANES, LONGEST_LOCAL: LANES}
WINDOW_TOKENS, FEWEST_DOCUMENTS, MOST_DOCUMENTS = 1_500_000, 1_500, 16_384
# Documents that a threshold must rest on; those that show the tail, at most, and their share.
ENOUGH_DOCUMENTS, FITTED = 50, 1_000
FITTED_SHARE: dict[Method, float] = {"scan": 0.02, "waterseeker": 0.1}


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
    drift, offsets = sample_growth(watermark, BETA, *GROWTH, GROWTH_DOCUMENTS // watermark.block_size, seed)
    rows = [_extended(np.maximum.accumulate(sampled[n]), sharp[n]) for n in lengths]
    return {
        "beta": BETA,
        "log10_levels": LOG10_LEVELS,
        "lengths": lengths,
        "thresholds": [[round(float(x), 3) for x in row if np.isfinite(x)] for row in rows],
        "drift": round(drift + 5e-8, 7),
        "offsets": [round(offset - 5e-4, 3) for offset in offsets],
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
    lengths = local_lengths(watermark.block_size, LOCAL_RATIO[method])
    samples = _scan_samples if method == "scan" else _window_samples
    thresholds, decays = [], []
    for best in samples(watermark, lengths, seed):
        thresholds.append(local_thresholds(best, LOCAL_LOG10_LEVELS, ENOUGH_DOCUMENTS))
        decays.append(local_decay(best, min(FITTED, int(FITTED_SHARE[method] * best.size))))
    log.info("%s %s r=%d", method, watermark.null.name, watermark.block_size)
    return {
        "parameters": method_parameters(method, watermark.block_size),
        "log10_levels": LOCAL_LOG10_LEVELS,
        "lengths": lengths,
        "thresholds": thresholds,
        "decays": [round(decay - 5e-5, 4) for decay in decays],
    }


def _scan_samples(watermark: Watermark, lengths: Sequence[int], seed: int) -> Iterator[Scores]:
    """Best scores for each length, of more documents the shorter they are."""
    done = 0
    for longest, documents in SCAN_DOCUMENTS.items():
        of_run = [tokens for tokens in lengths if done < tokens <= longest]
        yield from sample_scan(watermark, of_run, documents, seed).values()
        done = longest


def _window_samples(watermark: Watermark, lengths: Sequence[int], seed: int) -> Iterator[Scores]:
    for tokens in lengths:
        documents = min(MOST_DOCUMENTS, max(FEWEST_DOCUMENTS, WINDOW_TOKENS // tokens))
        yield sample_windows(watermark, tokens, documents, seed)


def local_lengths(block_size: int, ratio: float) -> list[int]:
    """From one block on every length, then geometric ones, and the last before `waterseeker` has regions."""
    lengths = list(range(block_size, DENSE + 1))
    while lengths[-1] < LONGEST_LOCAL:
        lengths.append(min(LONGEST_LOCAL, round(lengths[-1] * ratio)))
    return sorted({*lengths, SHORTEST - 1})
