"""Local alignment of block scores, in the manner of sequence search (Smith and Waterman 1981).

D_t = max(0, D_{t-1} - skip, D_{t-r} + z_t - drift): a segment is a run of blocks whose scores beat
`drift` on average; block boundaries may shift inside it by skipped tokens.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from shared.watermark.detectors.segments import Peak

DRIFT_PER_TOKEN = 0.15
SKIP = 5.0


def scan_parameters(block_size: int) -> dict[str, float]:
    """What the null of `best_peak` depends on beside the scores: drift of a block, price of a skip."""
    return {"drift": DRIFT_PER_TOKEN * block_size, "skip": SKIP}


def scan_peaks(
    scores: NDArray[np.float64], block_size: int, is_reported: Callable[[float], bool]
) -> list[Peak]:
    """The best peak, and for every reported one the best peaks to its left and right; best first.

    `scores` [n - r + 1] are the z of the blocks that start at each of n tokens. Linear in n for every
    reported peak.
    """
    values = (scores - DRIFT_PER_TOKEN * block_size).tolist()
    end = len(values) + block_size - 1
    first = best_peak(values, block_size, 0, end)
    peaks, pending = [first], [(0, first, end)]
    while pending:
        low, peak, high = pending.pop()
        if is_reported(peak.score):
            for start, stop in ((low, peak.start), (peak.end, high)):
                rest = best_peak(values, block_size, start, stop)
                peaks.append(rest)
                pending.append((start, rest, stop))
    return sorted(peaks, key=lambda peak: -peak.score)


def best_peak(values: list[float], block_size: int, start: int, end: int) -> Peak:
    """The best local alignment within the tokens [start, end); score 0 where nothing is positive.

    `values[i]` is z - drift of the block that starts at token i.
    """
    best, top = Peak(start, start, 0.0), 0.0
    # D and the start of its alignment at the last r boundaries, by boundary modulo r.
    scores, origins = [0.0] * block_size, [0] * block_size
    for boundary in range(start, start + block_size):
        origins[boundary % block_size] = boundary
    slot = (start + block_size - 1) % block_size
    for block, value in enumerate(values[start : max(start, end - block_size + 1)], start):
        skipped, origin = scores[slot] - SKIP, origins[slot]
        slot = block % block_size
        score = scores[slot] + value
        if score >= skipped:
            origin = origins[slot]
        else:
            score = skipped
        if score <= 0.0:
            score, origin = 0.0, block + block_size
        elif score > top:
            top = score
            best = Peak(origin, block + block_size, score)
        scores[slot], origins[slot] = score, origin
    return best


def best_scores(chunks: Iterable[NDArray[np.float64]], block_size: int, count: int) -> NDArray[np.float64]:
    """The score of `best_peak` of `count` sequences at once [count]; chunks [positions, count]."""
    values = [np.zeros(count) for _ in range(block_size)]  # D of the last r boundaries
    best, skipped = np.zeros(count), np.empty(count)
    boundary = block_size
    for chunk in chunks:
        for scores in chunk - DRIFT_PER_TOKEN * block_size:
            current = values[boundary % block_size]
            np.subtract(values[(boundary - 1) % block_size], SKIP, out=skipped)
            current += scores
            np.maximum(current, skipped, out=current)
            np.maximum(current, 0.0, out=current)
            np.maximum(best, current, out=best)
            boundary += 1
    return best
