"""The tables that ship: well-formed, and measured false positives at most as promised."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from ttmark.shared.watermark.detectors.alignment import BETA, aligned_scores
from ttmark.shared.watermark.detectors.localized import METHODS, method_parameters
from ttmark.shared.watermark.detectors.scan import best_scores
from ttmark.shared.watermark.detectors.segments import log10_family
from ttmark.shared.watermark.detectors.waterseeker import best_window_scores
from ttmark.shared.watermark.null_tables import load_null_table
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

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
    assert len(null.aligned.offsets) == watermark.block_size
    for method, local in zip(METHODS, (null.scan, null.waterseeker), strict=True):
        assert local.parameters == method_parameters(method, watermark.block_size)
        assert np.all(np.diff(local.log10_levels) < 0)
        assert np.all(np.diff(local.lengths) > 0)
        assert local.lengths[0] == watermark.block_size
        assert local.lengths[-1] >= 10_000
        assert len(local.lengths) == len(local.thresholds) == len(local.decays)
        for thresholds in local.thresholds:
            assert len(thresholds) > 0
            assert np.all(np.diff(thresholds) >= 0)


def test_aligned_false_positives_are_at_most_promised_and_not_far_below(watermark):
    r = watermark.block_size
    scores = aligned_scores([null_scores(watermark, TOKENS - r + 1, TRIALS)], r, BETA, TRIALS)
    log10_p = np.array([table(watermark).aligned.log10_p(r, TOKENS, score) for score in scores])
    assert_at_most_promised(log10_p)
    assert np.mean(log10_p <= -1.0) > 0.03


@pytest.mark.parametrize("tokens", [11, 26, TOKENS])
def test_scan_false_positives_are_at_most_promised_and_not_far_below(watermark, tokens):
    r = watermark.block_size
    scores = best_scores([null_scores(watermark, tokens - r + 1, TRIALS)], r, TRIALS)
    null = table(watermark).scan
    log10_p = np.array([log10_family(null.log10_e(tokens, score)) for score in scores])
    assert_at_most_promised(log10_p)
    assert np.mean(log10_p <= -1.0) > 0.03


@pytest.mark.parametrize("tokens", [26, 99, 300])
def test_waterseeker_false_positives_are_at_most_promised(watermark, tokens):
    r = watermark.block_size
    null = table(watermark).waterseeker
    best = best_window_scores(null_scores(watermark, 3000, tokens - r + 1), r, watermark.log10_p_of_z_sum)
    log10_p = np.array([log10_family(null.log10_e(tokens, score)) for score in best])
    assert_at_most_promised(log10_p)
    assert np.mean(log10_p <= -1.0) > 0.03


def test_aligned_false_positives_beyond_the_table_are_at_most_promised(watermark):
    """The rows up to 300 tokens alone, asked about five times as many."""
    r, full = watermark.block_size, table(watermark).aligned
    rows = [i for i, n in enumerate(full.lengths) if n <= 300]
    short = replace(
        full, lengths=[full.lengths[i] for i in rows], thresholds=[full.thresholds[i] for i in rows]
    )
    scores = aligned_scores([null_scores(watermark, 1500 - r + 1, TRIALS // 4)], r, BETA, TRIALS // 4)
    log10_p = np.array([short.log10_p(r, 1500, score) for score in scores])
    assert_at_most_promised(log10_p)
    assert np.mean(log10_p <= -1.0) > 0.03
