"""WaterSeeker for many documents at once against one document at a time, in plain loops."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark.detectors.waterseeker import (
    MERGED_GAP,
    SHORTEST,
    TOP_SHARE,
    TOP_WINDOWS,
    WINDOW,
    best_window_scores,
    waterseeker_peaks,
)
from ttmark.shared.watermark.schemes.watermark import Watermark


def slow_regions(series, block_size):
    """[start, end) of the runs of windows above the margin, close ones merged, short ones dropped."""
    window = WINDOW // block_size
    means = [np.mean(series[i : i + window]) for i in range(len(series) - window + 1)]
    if not means:
        return
    overall = np.mean(means)
    margin = TOP_SHARE * (np.mean(sorted(means)[-TOP_WINDOWS:]) - overall)
    runs = []
    for i in np.flatnonzero(np.array(means) > overall + max(margin, 0.0)):
        if runs and i - runs[-1][1] <= MERGED_GAP // block_size:
            runs[-1][1] = i
        else:
            runs.append([i, i])
    for first, last in runs:
        if (last + window - first) * block_size >= SHORTEST:
            yield first, last + window


def slow_best_z(series, start, end, block_size):
    """The highest z of a window that starts within the first and ends within the last window."""
    window = WINDOW // block_size
    return max(
        (sum(series[i:j]) / math.sqrt(j - i), j - i)
        for i in range(start, start + window)
        for j in range(end - window + 1, end + 1)
    )


def noise(watermark, documents, positions, seed=0):
    words = np.random.default_rng(seed).integers(0, 2**64, (documents, positions), dtype=np.uint64)
    return watermark.standardize(watermark.null.draw(words))


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("scheme", ["synthid", "gumbel"])
def test_each_region_gives_its_window_of_highest_z(scheme, block_size):
    watermark = Watermark(scheme, block_size)
    regions = 0
    for scores in noise(watermark, 8, 400):
        expected = []
        for residue in range(block_size):
            series = scores[residue::block_size].tolist()
            for start, end in slow_regions(series, block_size):
                z, blocks = slow_best_z(series, start, end, block_size)
                expected.append(-watermark.log10_p_of_z_sum(z * math.sqrt(blocks), blocks))
        found = waterseeker_peaks(scores, block_size, watermark.log10_p_of_z_sum)
        assert [peak.score for peak in found] == pytest.approx(sorted(expected, reverse=True))
        regions += len(found)
    assert regions >= 3


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("tokens", [3, 4, 5, 9, 60, 99])
def test_a_document_shorter_than_a_region_is_one(block_size, tokens):
    """Its window starts in the first half, or the first 50 tokens, and ends in the last."""
    watermark = Watermark("gumbel", block_size)
    for scores in noise(watermark, 8, tokens - block_size + 1):
        expected = []
        for residue in range(block_size):
            series = scores[residue::block_size].tolist()
            half = max(1, min(WINDOW // block_size, len(series) // 2))
            ends = range(len(series) - half + 1, len(series) + 1)
            if series:
                z, blocks = max(
                    (sum(series[i:j]) / math.sqrt(j - i), j - i) for i in range(half) for j in ends
                )
                expected.append(-watermark.log10_p_of_z_sum(z * math.sqrt(blocks), blocks))
        found = waterseeker_peaks(scores, block_size, watermark.log10_p_of_z_sum)
        assert [peak.score for peak in found] == pytest.approx(sorted(expected, reverse=True))
        assert all(0 <= peak.start < peak.end <= tokens for peak in found)


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("positions", [1, 60, 130, 3000])
@pytest.mark.parametrize("scheme", ["mcmark", "gumbel"])
def test_many_documents_at_once_give_the_best_peak_of_each(scheme, block_size, positions):
    watermark = Watermark(scheme, block_size)
    scores = noise(watermark, 20, positions)
    scores[3, positions // 2 :] += 0.4
    best = best_window_scores(scores, block_size, watermark.log10_p_of_z_sum)
    alone = [waterseeker_peaks(row, block_size, watermark.log10_p_of_z_sum) for row in scores]
    assert best == pytest.approx([peaks[0].score if peaks else 0.0 for peaks in alone])


def test_documents_are_worked_on_in_chunks(monkeypatch):
    watermark = Watermark("synthid", 2)
    scores = noise(watermark, 50, 300)
    whole = best_window_scores(scores, 2, watermark.log10_p_of_z_sum)
    monkeypatch.setattr("ttmark.shared.watermark.detectors.waterseeker.CHUNK_SCORES", 900)
    assert np.array_equal(best_window_scores(scores, 2, watermark.log10_p_of_z_sum), whole)
    assert np.count_nonzero(whole) > 5
