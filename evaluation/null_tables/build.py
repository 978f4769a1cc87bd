"""Build the null tables that ship with the package."""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.alignment import BETA, aligned_scores
from ttmark.shared.watermark.detectors.localized import Method, method_parameters
from ttmark.shared.watermark.detectors.scan import best_scores_so_far
from ttmark.shared.watermark.detectors.waterseeker import CHUNK_SCORES, SHORTEST, best_window_scores
from ttmark.shared.watermark.null_tables import TABLE_VERSION
from ttmark.shared.watermark.nulls import BinomialNull, ExponentialNull, Null
from ttmark.shared.watermark.schemes.watermark import Watermark


@dataclass(frozen=True)
class Proposal:
    """Tilt of the scores on the drawn alignment, and its chance to skip a token."""

    theta: float
    rho: float


@dataclass(frozen=True)
class WeightedSample:
    scores: NDArray[np.float64]
    weights: NDArray[np.float64]


def sample_aligned(
    watermark: Watermark, beta: float, proposal: Proposal, lengths: Sequence[int], count: int, seed: int
) -> dict[int, WeightedSample]:
    """`count` weighted draws of D for each number of tokens in `lengths`, all from one run."""
    rng = np.random.default_rng(seed)
    null, block_size = watermark.null, watermark.block_size
    theta, rho = proposal.theta, proposal.rho
    moved = tilted(null, theta)
    wanted, longest = set(lengths), max(lengths)
    # Rings of the last r values, by token number modulo r: D, and the weight of all alignments.
    best = [np.full(count, -beta * t) for t in range(block_size)]
    mass = [np.full(count, rho**t) for t in range(block_size)]
    boundary = np.zeros(count, dtype=np.int64)  # the next boundary of each drawn alignment
    samples = {}
    for start in range(longest - block_size + 1):
        scores = null_scores(null, rng, (count,))
        at_boundary = np.flatnonzero(boundary == start)
        kept = at_boundary[rng.random(at_boundary.size) >= rho]
        scores[kept] = moved.draw(rng, kept.size)
        boundary[at_boundary] += 1
        boundary[kept] += block_size - 1
        end = start + block_size
        slot, previous = end % block_size, (end - 1) % block_size
        best[slot] = np.maximum(best[slot] + scores, best[previous] - beta)
        grown = mass[slot] * np.exp(theta * scores - moved.log_moment)
        mass[slot] = (1.0 - rho) * grown + rho * mass[previous]
        if end in wanted:
            inside = sum((mass[(end - j) % block_size] for j in range(1, block_size)), np.zeros(count))
            samples[end] = WeightedSample(best[slot].copy(), 1.0 / (mass[slot] + (1.0 - rho) * inside))
    return samples


def tail_bounds(sample: WeightedSample) -> tuple[NDArray[np.float64], ...]:
    """Falling distinct scores x, P(D >= x), its upper bound at three standard errors, sample size.

    The last is Kish's effective number of draws above x.
    """
    order = np.argsort(-sample.scores, kind="stable")
    # Squared weights of far tails underflow doubles.
    scores, weights = sample.scores[order], sample.weights[order].astype(np.longdouble)
    last = np.append(np.diff(scores) < -1e-9, True)  # after all draws of one value
    total, square = np.cumsum(weights)[last], np.cumsum(weights**2)[last]
    count = sample.scores.size
    probability = total / count
    error = np.sqrt(np.maximum(square / count - probability**2, 0.0) / count)
    return scores[last], probability, probability + 3.0 * error, total**2 / square


LANES = 16384
CONFIDENCE = 0.999


def sample_growth(
    watermark: Watermark, beta: float, first: int, last: int, documents: int, seed: int
) -> tuple[float, list[float]]:
    """Bounds on D of long texts, E D = drift n + offset: the drift from above, the offsets from below.

    Each is three standard errors off. `offsets[i]` is that of n = i modulo the block size. The drift is the
    growth between `first` and `last` tokens, whose difference is a multiple of the block size.
    """
    size, rng = watermark.block_size, np.random.default_rng(seed)

    def sample(tokens: int) -> NDArray[np.float64]:
        chunks = null_chunks(watermark.null, tokens - size + 1, documents, rng)
        return aligned_scores(chunks, size, beta, documents)

    short = {tokens: sample(tokens) for tokens in range(first, first + size)}
    long = [sample(tokens) for tokens in range(last, last + size)]
    growth = np.mean([scores.mean() for scores in long]) - np.mean([s.mean() for s in short.values()])
    variances = [scores.var() / scores.size for scores in (*long, *short.values())]
    drift = float(growth + 3.0 * np.sqrt(np.sum(variances)) / size) / (last - first)
    offsets = [0.0] * size
    for tokens, scores in short.items():
        lowest = scores.mean() - 3.0 * scores.std() / np.sqrt(scores.size)
        offsets[tokens % size] = float(lowest - drift * tokens)
    return drift, offsets


def sample_windows(watermark: Watermark, tokens: int, documents: int, seed: int) -> NDArray[np.float64]:
    """Best window score of each of `documents` unwatermarked documents of `tokens` scored tokens."""
    rng = np.random.default_rng(seed)
    positions = tokens - watermark.block_size + 1
    rows = max(1, CHUNK_SCORES // positions)
    runs = [
        best_window_scores(
            null_scores(watermark.null, rng, (min(rows, documents - start), positions)),
            watermark.block_size,
            watermark.log10_p_of_z_sum,
        )
        for start in range(0, documents, rows)
    ]
    return np.concatenate(runs)


def sample_scan(
    watermark: Watermark, lengths: Sequence[int], documents: int, seed: int
) -> dict[int, NDArray[np.float32]]:
    """Best segment scores of `scan` for several numbers of tokens, all from one run [documents].

    In single precision, because there are many.
    """
    rng = np.random.default_rng(seed)
    ends = {tokens - watermark.block_size + 1: tokens for tokens in lengths}
    samples = {tokens: np.empty(documents, dtype=np.float32) for tokens in lengths}
    for start in range(0, documents, LANES):
        chunks = null_chunks(watermark.null, max(ends), LANES, rng, ends)
        for positions, best in best_scores_so_far(chunks, watermark.block_size, LANES):
            if positions in ends:
                part = samples[ends[positions]][start : start + LANES]
                part[:] = best[: part.size]
    return samples


def local_thresholds(
    best: NDArray[np.floating[Any]], log10_levels: Sequence[float], enough: int
) -> list[float]:
    """The least score that a document's best reaches with probability at most 1 - exp(-10**level).

    For each level that at least `enough` of the documents support. The probability is its upper confidence
    bound (Clopper and Pearson), so that a threshold is too low with probability 1 - CONFIDENCE.
    """
    from scipy.stats import beta  # optional: `--help` works without it

    ordered = np.sort(best)[::-1]
    chances = -np.expm1(-(10.0 ** np.array(log10_levels)))
    # The most documents, by bisection, whose share is surely at most each chance.
    low, high = np.zeros(chances.size, dtype=np.int64), np.full(chances.size, ordered.size)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        sure = beta.ppf(CONFIDENCE, middle + 1, ordered.size - middle) <= chances
        low, high = np.where(sure, middle, low), np.where(sure, high, middle)
    thresholds = []
    for count in low[low >= enough].tolist():
        higher = ordered[: np.searchsorted(-ordered, -ordered[count], side="left")]
        if higher.size == 0:
            break
        # Rounded down: less than a thousandth below the next score that occurs.
        thresholds.append(math.floor(float(higher[-1]) * 1000.0) / 1000.0)
    return thresholds


def local_decay(best: NDArray[np.floating[Any]], fitted: int) -> float:
    """Fall per unit of log10 P(best >= x) far out, from below: three standard errors off.

    That of exponential excesses over all but the highest `fitted` scores; ln P is concave, so that it falls
    faster beyond. 0 where too few scores are higher.
    """
    ordered = np.sort(best)[::-1].astype(np.float64)
    excess = ordered[: fitted + 1] - ordered[fitted]
    excess = excess[excess > 0.0]
    if excess.size < 16:
        return 0.0
    return float((1.0 - 3.0 / np.sqrt(excess.size)) / excess.mean() / np.log(10.0))


Scores = NDArray[np.float64]
CHUNK_POSITIONS = 16


@dataclass(frozen=True)
class TiltedBinomial:
    """Standardised scores z under density proportional to exp(theta z) times the null's."""

    null: BinomialNull
    theta: float

    @property
    def log_moment(self) -> float:
        """ln E exp(theta z) under the null."""
        step = self.theta / self.null.standard_deviation
        grown = math.log1p(self.null.probability * math.expm1(step))
        return self.null.trials * grown - step * self.null.mean

    def draw(self, rng: np.random.Generator, count: int) -> Scores:
        limits, aliases = self._alias_table
        position = rng.random(count) * limits.size
        hits = position.astype(np.int64)
        hits = np.where(position - hits < limits[hits], hits, aliases[hits])
        return (hits.astype(np.float64) - self.null.mean) / self.null.standard_deviation

    @cached_property
    def _alias_table(self) -> tuple[Scores, NDArray[np.int64]]:
        """Walker's alias method: each hit count keeps its cell up to a limit and gives the rest away."""
        from scipy.stats import binom  # optional: `--help` works without it

        weight = self.null.probability * math.exp(self.theta / self.null.standard_deviation)
        probability = weight / (1.0 - self.null.probability + weight)
        cells = self.null.trials + 1
        limits = binom.pmf(np.arange(cells), self.null.trials, probability) * cells
        aliases = np.arange(cells)
        low, high = (
            [i for i in range(cells) if limits[i] < 1.0],
            [i for i in range(cells) if limits[i] >= 1.0],
        )
        while low and high:
            aliases[low[-1]] = high[-1]
            limits[high[-1]] -= 1.0 - limits[low.pop()]
            if limits[high[-1]] < 1.0:
                low.append(high.pop())
        limits[low + high] = 1.0
        return limits, aliases


@dataclass(frozen=True)
class TiltedExponential:
    """The same of an exponential null."""

    theta: float

    @property
    def log_moment(self) -> float:
        return -math.log1p(-self.theta) - self.theta

    def draw(self, rng: np.random.Generator, count: int) -> Scores:
        return rng.standard_exponential(count) / (1.0 - self.theta) - 1.0


def null_scores(null: Null, rng: np.random.Generator, shape: tuple[int, ...]) -> Scores:
    """Standardised scores of unwatermarked text."""
    words = rng.integers(0, 2**64, shape, dtype=np.uint64)
    scores: Scores = (null.draw(words) - null.mean) / null.standard_deviation
    return scores


def null_chunks(
    null: Null, positions: int, lanes: int, rng: np.random.Generator, stops: Iterable[int] = ()
) -> Iterator[Scores]:
    """Scores of `lanes` unwatermarked texts, [positions, lanes], a few positions at a time.

    A chunk ends at each of `stops` as well; the scores do not depend on them.
    """
    start = 0
    for end in sorted({*range(CHUNK_POSITIONS, positions, CHUNK_POSITIONS), *stops, positions}):
        yield null_scores(null, rng, (end - start, lanes))
        start = end


def tilted(null: Null, theta: float) -> TiltedBinomial | TiltedExponential:
    """The tilted scores of a null. Raises TypeError for a null without a closed form."""
    if isinstance(null, BinomialNull):
        return TiltedBinomial(null, theta)
    if isinstance(null, ExponentialNull):
        return TiltedExponential(theta)
    raise TypeError(f"no closed tilting for {null.name}")


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


def _scan_samples(
    watermark: Watermark, lengths: Sequence[int], seed: int
) -> Iterator[NDArray[np.floating[Any]]]:
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
