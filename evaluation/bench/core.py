"""Speed of scoring, aligned and localized detection beside numpy's own random numbers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ttmark.evaluation.bench.timing import least_seconds
from ttmark.shared.watermark import Watermark, detect_aligned, detect_localized, key_lanes
from ttmark.shared.watermark.detectors.alignment import BETA, DECOYS
from ttmark.shared.watermark.schemes.registry import build_scheme

PAIRS = 100_000
SHORT, LONG = 400, 10_000
REPEATS = 15

Case = tuple[str, int, Callable[[], object]]
"""What is measured, the 64-bit random words that it needs, and how to run it."""


@dataclass(frozen=True, slots=True)
class CoreSpeed:
    """One operation on one core.

    Attributes:
        milliseconds: of processor time, the best of REPEATS.
        ratio: to numpy generating as many random 64-bit words in the same run.
    """

    name: str
    milliseconds: float
    ratio: float


def measure_speed(scheme: str, seed: int) -> list[CoreSpeed]:
    """The operations that detection consists of, on pairs."""
    rng = np.random.default_rng(seed)
    found = []
    for name, words, run in _cases(Watermark(scheme, 2), rng):
        seconds = least_seconds(run, REPEATS)
        own = least_seconds(partial(rng.integers, 0, 2**64, words, dtype=np.uint64), REPEATS)
        found.append(CoreSpeed(name, 1e3 * seconds, seconds / own))
    return found


def _cases(watermark: Watermark, rng: np.random.Generator) -> Iterator[Case]:
    key = rng.bytes(16)
    contexts = rng.integers(0, 50_000, (PAIRS, watermark.context_width))
    pairs = rng.integers(0, 50_000, (PAIRS, 2))
    short, long = rng.integers(0, 50_000, SHORT), rng.integers(0, 50_000, LONG)
    positions = SHORT - watermark.context_width - 1
    scheme = build_scheme(watermark.scheme, watermark.parameters)
    words = scheme.word_count * (2 if scheme.uses_context_words else 1)
    yield (
        f"PRF and score of {PAIRS:,} pairs",
        words * PAIRS,
        lambda: watermark.score(key_lanes(key), contexts, pairs),
    )
    # No table holds for this beta, so that decoys are drawn.
    yield (
        f"aligned, {SHORT} tokens, {DECOYS:,} decoys",
        positions * DECOYS,
        lambda: detect_aligned(watermark, key, short, beta=BETA + 1.0),
    )
    yield f"aligned, {SHORT} tokens, null table", words * SHORT, lambda: detect_aligned(watermark, key, short)
    yield f"scan, {LONG:,} tokens, null table", words * LONG, lambda: detect_localized(watermark, key, long)
    yield (
        f"waterseeker, {LONG:,} tokens, null table",
        words * LONG,
        lambda: detect_localized(watermark, key, long, method="waterseeker"),
    )
