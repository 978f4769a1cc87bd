"""The tables that ship: well-formed, and measured false positives at most as promised."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from ttmark.shared.watermark import Watermark, scheme_names
from ttmark.shared.watermark.detectors.aligned import BETA
from ttmark.shared.watermark.detectors.alignment import aligned_scores
from ttmark.shared.watermark.detectors.localized import METHODS, method_parameters
from ttmark.shared.watermark.detectors.scan import best_scores
from ttmark.shared.watermark.detectors.segments import log10_family
from ttmark.shared.watermark.detectors.waterseeker import best_window_scores
from ttmark.shared.watermark.null_tables import load_null_table

TRIALS = 20_000
# No row of any table: thresholds come from interpolation.
TOKENS = 137

pytestmark = pytest.mark.parametrize(
    "watermark",
    [Watermark(scheme, block_size) for scheme in scheme_names() for block_size in (1, 2, 3)],
    ids=lambda watermark: f"{watermark.scheme}-r{watermark.block_size}",
)


def table(watermark):
    found = load_null_table(watermark.null.name, watermark.block_size)
    assert found is not None
    return found


def null_scores(watermark, *shape):
    words = np.random.default_rng(0).integers(0, 2**64, shape, dtype=np.uint64)
    return watermark.standardize(watermark.null.draw(words))


def assert_at_most_promised(log10_p):
    for level in (1e-1, 1e-2, 1e-3):
        found = int(np.count_nonzero(log10_p <= math.log10(level)))
        lower_99 = beta.ppf(0.005, found, log10_p.size - found + 1) if found else 0.0
        assert lower_99 <= level


def test_table_is_well_formed_and_made_for_the_detectors_settings(watermark):
    null = table(watermark)
    assert null.aligned.beta == BETA
    assert null.aligned.lengths[-1] >= 10_000
    assert np.all(np.diff(null.aligned.log10_levels) < 0)
    assert all(np.all(np.diff(row) >= 0) for row in null.aligned.thresholds)
    for method, local in zip(METHODS, (null.scan, null.waterseeker), strict=True):
        assert local.parameters == method_parameters(method, watermark.block_size)
        assert np.all(np.diff(local.scores) > 0)
        assert np.all(np.diff(local.log10_rates) < 0)
        assert local.decay > 0.0


def test_aligned_false_positives_are_at_most_promised_and_not_far_below(watermark):
    r = watermark.block_size
    scores = aligned_scores([null_scores(watermark, TOKENS - r + 1, TRIALS)], r, BETA, TRIALS)
    log10_p = np.array([table(watermark).aligned.log10_p(r, TOKENS, score) for score in scores])
    assert_at_most_promised(log10_p)
    assert np.mean(log10_p <= -1.0) > 0.03


def test_scan_false_positives_are_at_most_promised(watermark):
    r = watermark.block_size
    scores = best_scores([null_scores(watermark, TOKENS - r + 1, TRIALS)], r, TRIALS)
    null = table(watermark).scan
    assert_at_most_promised(np.array([log10_family(null.log10_e(TOKENS, score)) for score in scores]))


def test_waterseeker_false_positives_are_at_most_promised(watermark):
    null = table(watermark).waterseeker
    best = best_window_scores(
        null_scores(watermark, 3000, 300), watermark.block_size, watermark.log10_p_of_z_sum
    )
    tokens = 300 + watermark.block_size - 1
    assert_at_most_promised(np.array([log10_family(null.log10_e(tokens, score)) for score in best]))
