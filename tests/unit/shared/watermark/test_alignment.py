"""The recurrences of the aligned and localized detectors against slow searches over all alignments."""

import numpy as np
import pytest

from tests.harness.spec_detector.scores import aligned_score as as_specified
from ttmark.shared.watermark.detectors.alignment import aligned_score, aligned_score_of_each, aligned_scores
from ttmark.shared.watermark.detectors.scan import DRIFT_PER_TOKEN, best_peak, best_scores, scan_peaks
from ttmark.shared.watermark.detectors.segments import Peak, disjoint, log10_expected, log10_family


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("beta", [0.0, 0.7, 5.0])
def test_aligned_score_equals_algorithm_2(block_size, beta):
    rng = np.random.default_rng(block_size)
    for size in (1, 2, 3, 10, 101):
        scores = rng.normal(size=size)
        expected = as_specified(scores.tolist(), block_size, beta)
        assert aligned_score(scores, block_size, beta) == pytest.approx(expected)


@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_many_sequences_at_once_give_the_scores_of_each_alone(block_size):
    scores = np.random.default_rng(0).normal(size=(57, 8))
    chunks = (scores[:20], scores[20:21], scores[21:])
    aligned = aligned_scores(chunks, block_size, 1.5, 8)
    assert aligned == pytest.approx([aligned_score(column, block_size, 1.5) for column in scores.T])
    drift, end = DRIFT_PER_TOKEN * block_size, 57 + block_size - 1
    local = [best_peak(column, block_size, drift, 0, end).score for column in scores.T.tolist()]
    assert best_scores(chunks, block_size, 8) == pytest.approx(local)


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("sequences", [1, 5, 40])
def test_sequences_of_few_and_of_many_keys_have_the_score_of_each_to_the_bit(block_size, sequences):
    scores = np.random.default_rng(4).normal(size=(sequences, 57))
    alone = [aligned_score(own, block_size, 1.5) for own in scores]
    assert aligned_score_of_each(scores, block_size, 1.5).tolist() == alone


def test_strong_spans_far_apart_are_not_joined_and_near_ones_are():
    for gap, joined in ((60, True), (300, False)):
        scores = np.zeros(2000)
        scores[200:600:2] = 3.0
        scores[600 + gap : 1000 + gap : 2] = 3.0
        assert len([p for p in scan_peaks(scores, 2, lambda x: x > 10.0) if p.score > 10.0]) == 2 - joined


def test_spans_are_found_apart_at_either_parity_and_noise_has_one_unreported_peak():
    scores = np.full(2000, -0.1)
    scores[300:500:2] = 1.0
    scores[1101:1401:2] = 1.0
    peaks = scan_peaks(scores, 2, lambda score: score > 10.0)
    found = [(peak.start, peak.end) for peak in peaks if peak.score > 10.0]
    assert found == [(1101, 1401), (300, 500)]
    peaks = scan_peaks(np.random.default_rng(0).normal(size=500), 2, lambda score: score > 100.0)
    assert len(peaks) == 1


@pytest.mark.timeout(10)
def test_a_search_that_reports_everything_ends_and_an_empty_span_is_no_segment():
    scores = np.random.default_rng(0).normal(size=200)
    peaks = scan_peaks(scores, 2, lambda score: True)
    assert len(list(disjoint(peak for peak in peaks if peak.score > 0.0))) > 10
    assert scan_peaks(-np.ones(200), 2, lambda score: True) == [Peak(0, 0, 0.0)]


def test_overlapping_peaks_give_way_to_the_better_one():
    peaks = [Peak(10, 20, 9.0), Peak(15, 30, 8.0), Peak(20, 25, 7.0)]
    assert list(disjoint(peaks)) == [peaks[0], peaks[2]]


@pytest.mark.parametrize("log10_e", [-300.0, -16.0, -14.0, -2.0, 0.0, 1.0])
def test_e_value_and_family_p_value_are_inverse(log10_e):
    assert log10_expected(log10_family(log10_e)) == pytest.approx(log10_e, rel=1e-6, abs=1e-9)
    assert log10_family(log10_e) <= 0.0
