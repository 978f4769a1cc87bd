"""Local alignment of block scores, in the manner of sequence search (Smith and Waterman 1981).

D_t = max(0, D_{t-1} - skip, D_{t-r} + z_t - drift): a segment is a run of blocks whose scores beat
`drift` on average; block boundaries may shift inside it by skipped tokens. An alignment that lost what
GAP unwatermarked tokens cost is given up, so that two strong spans far apart stay two.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.segments import Peak
from ttmark.shared.watermark.interruption import paused_ranges

DRIFT_PER_TOKEN = 0.15
SKIP = 5.0
GAP = 100
# The ends of a segment are where scores fall below this share of its mean.
EDGE_SHARE = 0.5


def scan_parameters(block_size: int) -> dict[str, float]:
    """What `best_scores` depends on beside the scores: drift of a block, price of a skip."""
    return {"drift": DRIFT_PER_TOKEN * block_size, "skip": SKIP}


def scan_peaks(
    scores: NDArray[np.float64], block_size: int, is_reported: Callable[[float], bool]
) -> list[Peak]:
    """The best peak, and for every reported one the best peaks to its left and right; best first.

    `scores` [n - r + 1] are the z of the blocks that start at each of n tokens. Linear in n for every
    reported peak. Beside a peak that spans nothing, of score 0, nothing is looked for.
    """
    values, drift = scores.tolist(), DRIFT_PER_TOKEN * block_size
    end = len(values) + block_size - 1
    first = best_peak(values, block_size, drift, 0, end)
    peaks, pending = [], [(0, first, end)]
    while pending:
        low, peak, high = pending.pop()
        peaks.append(sharpened(values, block_size, peak, drift))
        if peak.score > 0.0 and is_reported(peak.score):
            for start, stop in ((low, peak.start), (peak.end, high)):
                pending.append((start, best_peak(values, block_size, drift, start, stop), stop))
    return sorted(peaks, key=lambda peak: -peak.score)


def sharpened(values: list[float], block_size: int, peak: Peak, drift: float) -> Peak:
    """The peak without the chance gains at its ends, which a drift that fits its mean score shows.

    `drift` is the one that the peak was found with.
    """
    blocks = (peak.end - peak.start) // block_size
    mean = drift + peak.score / max(blocks, 1)
    inner = best_peak(values, block_size, max(drift, EDGE_SHARE * mean), peak.start, peak.end)
    return Peak(inner.start, inner.end, peak.score)


def best_peak(values: list[float], block_size: int, drift: float, start: int, end: int) -> Peak:
    """The best local alignment within the tokens [start, end); score 0 where nothing is positive.

    `values[i]` is the z of the block that starts at token i; `drift` is the cost of a block.
    """
    best, drop = Peak(start, start, 0.0), drift * GAP / block_size
    # D of the alignments at the last r boundaries, their best D and their start, by boundary modulo r.
    scores, tops, origins = [0.0] * block_size, [0.0] * block_size, [0] * block_size
    for boundary in range(start, start + block_size):
        origins[boundary % block_size] = boundary
    slot = (start + block_size - 1) % block_size
    for first, stop in paused_ranges(start, end - block_size + 1):
        for block, value in enumerate(values[first:stop], first):
            skipped, top, origin = scores[slot] - SKIP, tops[slot], origins[slot]
            slot = block % block_size
            score = scores[slot] + value - drift
            if score >= skipped:
                top, origin = tops[slot], origins[slot]
            else:
                score = skipped
            if score <= 0.0 or score < top - drop:
                score, top, origin = 0.0, 0.0, block + block_size
            elif score > top:
                top = score
                if score > best.score:
                    best = Peak(origin, block + block_size, score)
            scores[slot], tops[slot], origins[slot] = score, top, origin
    return best


def best_scores(chunks: Iterable[NDArray[np.float64]], block_size: int, count: int) -> NDArray[np.float64]:
    """At least the score of `best_peak` of `count` sequences [count]; chunks [positions, count]."""
    best = np.zeros(count)
    for _, so_far in best_scores_so_far(chunks, block_size, count):
        best = so_far
    return best


def best_scores_so_far(
    chunks: Iterable[NDArray[np.float64]], block_size: int, count: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """After each chunk the positions so far and their `best_scores`, in one array that changes.

    No alignment is given up here: an upper bound of the null is a bound, and it is faster.
    """
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
        yield boundary - block_size, best
