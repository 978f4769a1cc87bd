"""WaterSeeker (Pan et al. 2025) for blocks: suspicious regions first, then the best window in each.

A watermarked span carries its signal at one residue of positions modulo r only, so each residue is
searched as a series of its own; windows and gaps are in tokens. A document that is shorter than the
shortest region is one region, which the original leaves out.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.segments import Peak
from ttmark.shared.watermark.interruption import pause

WINDOW = 50
TOP_WINDOWS = 20
TOP_SHARE = 0.5
DEVIATIONS = 0.0
"""th2 of the original; 1.5 in its study of false positives."""
MERGED_GAP = 100
SHORTEST = 100
# Scores worked on at once: 8 MiB.
CHUNK_SCORES = 1 << 20
# Parts of them between two pauses.
_PARTS = 8
# Exact tails between two pauses.
_TAILS = 128
WindowTest = Callable[[float, int], float]
"""log10 p-value of a window from the sum of its z and its number of blocks."""
Windows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Document, start, exclusive end and sum of z of each window [R]."""


def waterseeker_parameters() -> dict[str, float]:
    return {"window": WINDOW, "deviations": DEVIATIONS, "merged_gap": MERGED_GAP, "shortest": SHORTEST}


def waterseeker_peaks(scores: NDArray[np.float64], block_size: int, window_log10_p: WindowTest) -> list[Peak]:
    """The best window of every suspicious region, best first; its score is -log10 of its p-value.

    `scores` [n - r + 1] are the z of the blocks that start at each of n tokens.
    """
    peaks = []
    for residue in range(block_size):
        tokens = scores.size + block_size - 1
        _, starts, ends, sums = _best_windows(scores[None, residue::block_size], tokens, block_size)
        for start, end, total in zip(starts.tolist(), ends.tolist(), sums.tolist(), strict=True):
            score = -window_log10_p(total, end - start)
            peaks.append(Peak(residue + start * block_size, residue + end * block_size, score))
    return sorted(peaks, key=lambda peak: -peak.score)


def best_window_scores(
    scores: NDArray[np.float64], block_size: int, window_log10_p: WindowTest
) -> NDArray[np.float64]:
    """The score of the best of `waterseeker_peaks` for each of many documents [D]; 0 where it finds none.

    `scores` [D, n - r + 1].
    """
    best = np.zeros(scores.shape[0])
    rows = max(1, CHUNK_SCORES // _PARTS // max(1, scores.shape[1]))
    documents, cells = [], []
    for first in range(0, best.size, rows):
        for residue in range(block_size):
            pause()
            series = scores[first : first + rows, residue::block_size]
            tokens = scores.shape[1] + block_size - 1
            number, starts, ends, sums = _best_windows(series, tokens, block_size)
            documents.append(first + number)
            cells.append(np.round(sums, 9) + 1j * (ends - starts))
    # Scores on a lattice repeat a few sums, and exact tails are what takes time: one number of each sum and
    # length.
    distinct, cell = np.unique(np.concatenate(cells), return_inverse=True)
    tails = np.zeros(distinct.size)
    for index, x in enumerate(distinct.tolist()):
        if index % _TAILS == 0:
            pause()
        tails[index] = window_log10_p(x.real, int(x.imag))
    np.maximum.at(best, np.concatenate(documents), -tails[cell])
    return best


def _best_windows(series: NDArray[np.float64], tokens: int, block_size: int) -> Windows:
    """The window of highest z in each suspicious region of `series` [D, blocks], by document and start.

    A window starts within the first WINDOW tokens of its region and ends within the last. `tokens` is the
    length of the documents.
    """
    window = max(1, WINDOW // block_size)
    totals = np.zeros((series.shape[0], series.shape[1] + 1))
    np.cumsum(series, axis=1, out=totals[:, 1:])
    if tokens < SHORTEST:
        window = max(1, min(window, series.shape[1] // 2))
        documents, lows, highs = _whole(totals)
    else:
        documents, lows, highs = _regions(totals, window, block_size)
    offsets = np.arange(window)
    before = totals[documents[:, None], lows[:, None] + offsets]  # [R, window]
    last_ends = highs[:, None] - window + 1 + offsets  # [R, window]
    after = totals[documents[:, None], last_ends]
    best = np.full(documents.size, -math.inf)
    starts, ends, rows = lows.copy(), highs.copy(), np.arange(documents.size)
    # A region has at least two windows' length or one block, so that no start lies behind an end.
    for offset in range(window):
        z = (after - before[:, offset, None]) / np.sqrt(last_ends - lows[:, None] - offset)
        column = np.argmax(z, axis=1)
        better = z[rows, column] > best
        best = np.where(better, z[rows, column], best)
        starts = np.where(better, lows + offset, starts)
        ends = np.where(better, last_ends[rows, column], ends)
    return documents, starts, ends, totals[documents, ends] - totals[documents, starts]


def _whole(totals: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """`_regions` of documents that are one region each."""
    blocks = totals.shape[1] - 1
    documents = np.arange(totals.shape[0] if blocks else 0)
    return documents, np.zeros_like(documents), np.full_like(documents, blocks)


def _regions(
    totals: NDArray[np.float64], window: int, block_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Runs of windows with a mean well above the document's, close ones merged, short ones dropped.

    From running sums [D, blocks + 1]: document, start and exclusive end of each region [R].
    """
    if totals.shape[1] <= window:
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    means = (totals[:, window:] - totals[:, :-window]) / window  # [D, windows]
    overall = means.mean(axis=1)
    highest = min(TOP_WINDOWS, means.shape[1])
    top = np.partition(means, -highest, axis=1)[:, -highest:].mean(axis=1)
    margin = np.maximum(TOP_SHARE * (top - overall), DEVIATIONS * means.std(axis=1))
    documents, above = np.nonzero(means > (overall + margin)[:, None])
    opens = np.ones(above.size, dtype=np.bool_)
    opens[1:] = (np.diff(documents) > 0) | (np.diff(above) > MERGED_GAP // block_size)
    first = np.flatnonzero(opens)
    last = np.append(first[1:], above.size)[: first.size] - 1
    lows, highs = above[first], above[last] + window
    kept = (highs - lows) * block_size >= SHORTEST
    return documents[first][kept], lows[kept], highs[kept]
