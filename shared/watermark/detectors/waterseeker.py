"""WaterSeeker (Pan et al. 2025) for blocks: suspicious regions first, then the best window in each.

A watermarked span carries its signal at one residue of positions modulo r only, so each residue is
searched as a series of its own; windows and gaps are in tokens.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.watermark.detectors.segments import Peak

WINDOW = 50
TOP_WINDOWS = 20
TOP_SHARE = 0.5
DEVIATIONS = 0.0
"""th2 of the original; 1.5 in its study of false positives."""
MERGED_GAP = 100
SHORTEST = 100
WindowTest = Callable[[float, int], float]
"""log10 p-value of a window from the sum of its z and its number of blocks."""


def waterseeker_parameters() -> dict[str, float]:
    """What the null of `waterseeker_peaks` depends on beside the scores."""
    return {"window": WINDOW, "deviations": DEVIATIONS, "merged_gap": MERGED_GAP, "shortest": SHORTEST}


@dataclass(frozen=True, slots=True)
class _Region:
    start: int
    end: int  # exclusive


def waterseeker_peaks(scores: NDArray[np.float64], block_size: int, window_log10_p: WindowTest) -> list[Peak]:
    """The best window of every suspicious region, best first; its score is -log10 of its p-value.

    `scores` [n - r + 1] are the z of the blocks that start at each of n tokens.
    """
    peaks = []
    for residue in range(block_size):
        series = scores[residue::block_size]
        for region in _regions(series, block_size):
            start, end = _best_window(series, region, max(1, WINDOW // block_size))
            log10_p = window_log10_p(float(series[start:end].sum()), end - start)
            peaks.append(Peak(residue + start * block_size, residue + end * block_size, -log10_p))
    return sorted(peaks, key=lambda peak: -peak.score)


def _regions(series: NDArray[np.float64], block_size: int) -> Iterator[_Region]:
    """Runs of windows with a mean well above the document's, close ones merged, short ones dropped."""
    window = max(1, WINDOW // block_size)
    if series.size < window:
        return
    totals = np.concatenate([[0.0], np.cumsum(series)])
    means = (totals[window:] - totals[:-window]) / window
    overall = float(means.mean())
    top = float(np.partition(means, -min(TOP_WINDOWS, means.size))[-TOP_WINDOWS:].mean())
    margin = max(TOP_SHARE * (top - overall), DEVIATIONS * float(means.std()))
    above = np.flatnonzero(means > overall + margin)
    if above.size == 0:
        return
    for run in np.split(above, np.flatnonzero(np.diff(above) > MERGED_GAP // block_size) + 1):
        region = _Region(int(run[0]), int(run[-1]) + window)
        if (region.end - region.start) * block_size >= SHORTEST:
            yield region


def _best_window(series: NDArray[np.float64], region: _Region, window: int) -> tuple[int, int]:
    """The [start, end) of highest z, start within the first window and end within the last."""
    totals = np.concatenate([[0.0], np.cumsum(series[region.start : region.end])])
    size = region.end - region.start
    starts = np.arange(min(window, size))
    ends = np.arange(max(1, size - window + 1), size + 1)
    lengths = ends[None, :] - starts[:, None]  # [starts, ends]
    z = np.where(lengths > 0, totals[ends][None, :] - totals[starts][:, None], -math.inf)
    start, end = np.unravel_index(np.argmax(z / np.sqrt(np.maximum(lengths, 1))), z.shape)
    return region.start + int(starts[start]), region.start + int(ends[end])
