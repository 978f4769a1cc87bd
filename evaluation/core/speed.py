"""Speed of scoring, aligned and localized detection beside numpy's own random numbers."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from evaluation.core.markdown import table
from shared.watermark import Watermark, detect_aligned, detect_localized, key_lanes
from shared.watermark.detectors.aligned import BETA
from shared.watermark.detectors.alignment import aligned_scores
from shared.watermark.detectors.decoys import DECOYS, decoy_scores

PAIRS = 100_000
REPEATS = 9


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
    watermark, key = Watermark(scheme, 2), rng.bytes(16)
    contexts = rng.integers(0, 50_000, (PAIRS, watermark.context_width))
    pairs = rng.integers(0, 50_000, (PAIRS, 2))
    short, long = rng.integers(0, 50_000, 400), rng.integers(0, 50_000, 10_000)
    positions = short.size - watermark.context_width - 1

    def decoys() -> None:
        aligned_scores(decoy_scores(watermark, key, short, positions), 2, BETA, DECOYS)

    cases: list[tuple[str, int, Callable[[], object]]] = [
        (
            f"PRF and score of {PAIRS:,} pairs",
            2 * PAIRS,
            lambda: watermark.score(key_lanes(key), contexts, pairs),
        ),
        (f"aligned, 400 tokens x {DECOYS:,} decoys", positions * DECOYS, decoys),
        ("aligned, 400 tokens, null table", 2 * positions, lambda: detect_aligned(watermark, key, short)),
        ("scan, 10,000 tokens, null table", 2 * long.size, lambda: detect_localized(watermark, key, long)),
        (
            "waterseeker, 10,000 tokens, null table",
            2 * long.size,
            lambda: detect_localized(watermark, key, long, method="waterseeker"),
        ),
    ]
    found = []
    for name, words, run in cases:
        seconds = _best(run)
        own = _best(partial(rng.integers, 0, 2**64, words, dtype=np.uint64))
        found.append(CoreSpeed(name, 1e3 * seconds, seconds / own))
    return found


def speed_table(scheme: str, seed: int) -> str:
    """`measure_speed` as Markdown."""
    rows = [
        [speed.name, f"{speed.milliseconds:.2f} ms", f"{speed.ratio:.1f}"]
        for speed in measure_speed(scheme, seed)
    ]
    return table(["what", f"time ({scheme}, r = 2)", "ratio to numpy's random words"], rows)


def _best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)
