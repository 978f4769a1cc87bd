"""Look-ups in null tables: always to the safe side, and None where the table ends."""

import math

import pytest

from ttmark.shared.watermark.null_tables import AlignedNull, LocalNull, load_null_table

ALIGNED = AlignedNull(
    beta=5.0,
    log10_levels=[-1.0, -2.0, -3.0],
    lengths=[8, 9, 16, 17],
    thresholds=[[2.0, 4.0, 6.0], [1.0, 3.0], [4.0, 6.0, 9.0], [3.0, 5.0, 7.0]],
)
LOCAL = LocalNull(parameters={}, scores=[2.0, 4.0, 6.0], log10_rates=[-3.0, -4.0, -5.5], decay=0.5)


@pytest.mark.parametrize(
    ("score", "log10_p"), [(-9.0, 0.0), (1.99, 0.0), (2.0, -1.0), (3.9, -1.0), (5.0, -2.0), (99.0, -3.0)]
)
def test_aligned_p_value_is_the_last_level_reached(score, log10_p):
    assert ALIGNED.log10_p(2, 8, score) == log10_p


def test_lengths_between_rows_of_the_same_remainder_are_interpolated_in_the_root():
    share = (math.sqrt(12) - math.sqrt(8)) / (math.sqrt(16) - math.sqrt(8))
    threshold = 4.0 + share * 2.0
    assert ALIGNED.log10_p(2, 12, threshold) == -2.0
    assert ALIGNED.log10_p(2, 12, threshold - 1e-6) == -1.0


def test_levels_that_a_short_row_lacks_are_not_reached():
    assert ALIGNED.log10_p(2, 9, 100.0) == -2.0
    assert ALIGNED.log10_p(2, 11, 100.0) == -2.0


@pytest.mark.parametrize("tokens", [6, 7, 18, 19, 1000])
def test_lengths_outside_the_table_are_not_answered(tokens):
    assert ALIGNED.log10_p(2, tokens, 5.0) is None


@pytest.mark.parametrize(
    ("score", "rate"), [(0.0, 0.0), (2.0, -3.0), (3.9, -3.0), (4.0, -4.0), (6.0, -5.5), (8.0, -6.5)]
)
def test_e_value_grows_with_length_and_decays_beyond_the_table(score, rate):
    assert LOCAL.log10_e(100, score) == pytest.approx(2.0 + rate)


def test_a_distribution_without_a_table_has_none():
    assert load_null_table("binomial-7-0.5", 2) is None
