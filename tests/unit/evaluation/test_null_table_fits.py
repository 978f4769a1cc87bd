"""What null tables are fitted with, against distributions whose tails are known."""

import math

import numpy as np
import pytest

from ttmark.evaluation.null_tables.build import local_decay, local_thresholds, sample_growth, sample_scan
from ttmark.shared.watermark.detectors.scan import scan_peaks
from ttmark.shared.watermark.schemes.watermark import Watermark

pytestmark = pytest.mark.long

LEVELS = [0.0, -1.0, -2.0, -3.0, -4.0, -5.0]


def test_thresholds_of_an_exponential_score_lie_a_little_above_its_quantiles():
    best = np.random.default_rng(0).standard_exponential(100_000)
    thresholds = local_thresholds(best, LEVELS, 50)
    assert len(thresholds) == 4  # 50 of 100,000 support no E below 1e-3
    for level, threshold in zip(LEVELS, thresholds, strict=False):
        quantile = -math.log(-math.expm1(-(10.0**level)))
        assert 0.0 < threshold - quantile < 6.0 / math.sqrt(100_000 * 10.0**level)


def test_a_threshold_of_a_lattice_is_just_below_a_value_that_occurs():
    best = np.repeat([0.0, 0.5, 1.5, 2.5], [8000, 1500, 400, 100])
    # 70 of 10,000 would surely be rarer than 1 in 100, but no score is that rare.
    assert local_thresholds(best, [-0.5, -1.0, -2.0], 50) == [0.5, 1.5]


def test_the_decay_is_a_little_below_the_true_one():
    best = np.random.default_rng(1).exponential(2.0, 100_000)
    true = 0.5 / math.log(10.0)
    assert 0.8 * true < local_decay(best, 1000) < true
    assert local_decay(np.zeros(5000), 1000) == 0.0


def test_growth_of_single_tokens_is_none():
    """With r = 1 a skip costs more than almost any token: D is a sum of scores of mean 0."""
    drift, offsets = sample_growth(Watermark("gumbel", 1), 5.0, 20, 200, 16_384, 0)
    error = 1.0 / math.sqrt(16_384)
    assert 0.0 < drift < 6.0 * error * math.sqrt(220) / 180
    assert -12.0 * error * math.sqrt(20) - 20 * drift < offsets[0] < 0.0


@pytest.mark.parametrize("block_size", [2, 3])
def test_growth_predicts_the_mean_of_longer_texts_from_either_side(block_size):
    watermark = Watermark("synthid", block_size)
    drift, offsets = sample_growth(watermark, 5.0, 60, 240, 16_384, 0)
    assert 0.03 < drift < 0.05
    assert len(offsets) == block_size
    assert all(-2.0 * 5.0 < offset < 0.0 for offset in offsets)


@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_scan_of_many_lengths_at_once_is_that_of_each(block_size):
    watermark = Watermark("mcmark", block_size)
    together = sample_scan(watermark, [9, 40, 33], 300, 5)
    for tokens, best in together.items():
        assert np.array_equal(best, sample_scan(watermark, [tokens], 300, 5)[tokens])
    assert np.all(together[9] <= together[33])
    assert np.all(together[33] <= together[40])


def test_the_sampled_best_is_that_of_the_detector():
    watermark = Watermark("synthid", 2)
    words = np.random.default_rng(7).integers(0, 2**64, (16, 16_384), dtype=np.uint64)
    scores = watermark.standardize(watermark.null.draw(words))
    best = sample_scan(watermark, [17], 20, 7)[17]
    alone = [scan_peaks(scores[:, i], 2, lambda score: False)[0].score for i in range(20)]
    assert best == pytest.approx(alone, abs=1e-5)
