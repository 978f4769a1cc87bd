"""Look-ups in null tables: always to the safe side, and None below the table."""

import math

import pytest

from ttmark.shared.watermark.null_tables import AlignedNull, LocalNull, load_null_table

ALIGNED = AlignedNull(
    beta=5.0,
    log10_levels=[-1.0, -2.0, -3.0],
    lengths=[8, 9, 16, 17],
    thresholds=[[2.0, 4.0, 6.0], [1.0, 3.0], [4.0, 6.0, 9.0], [3.0, 5.0, 7.0]],
    drift=0.1,
    offsets=[-0.5, -1.0],
)
LOCAL = LocalNull(
    parameters={},
    log10_levels=[0.0, -1.0, -2.0],
    lengths=[10, 100],
    thresholds=[[1.0, 2.0], [2.0, 4.0, 6.0]],
    decays=[1.0, 0.5],
)


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


@pytest.mark.parametrize("tokens", [6, 7])
def test_lengths_below_the_table_are_not_answered(tokens):
    assert ALIGNED.log10_p(2, tokens, 5.0) is None


@pytest.mark.parametrize(("tokens", "last"), [(64, 2), (65, 3), (100_000, 2)])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_beyond_the_last_row_the_distance_from_the_mean_grows_as_the_root(tokens, last, level):
    length, offset = ALIGNED.lengths[last], ALIGNED.offsets[tokens % 2]
    excess = ALIGNED.thresholds[last][level] - 0.1 * length - offset
    threshold = 0.1 * tokens + offset + excess * math.sqrt(tokens / length)
    assert ALIGNED.log10_p(2, tokens, threshold) == ALIGNED.log10_levels[level]
    assert ALIGNED.log10_p(2, tokens, threshold - 1e-4) == ([0.0, *ALIGNED.log10_levels])[level]


@pytest.mark.parametrize(
    ("tokens", "score", "log10_e"),
    [
        (1, 1.0, 0.0),  # shorter than the first row: a longer document shows at least as much
        (10, 0.9, math.inf),
        (10, 1.9, 0.0),
        (10, 2.0, -1.0),
        (10, 2.5, -1.5),  # one decade per unit beyond the row
        (11, 2.5, 0.0),
        (100, 5.9, -1.0),
        (100, 8.0, -3.0),
        (1000, 8.0, -2.0),
        (1000, 1.9, math.inf),
    ],
)
def test_e_value_is_that_of_the_next_longer_row_and_grows_with_length_beyond_the_last(tokens, score, log10_e):
    assert LOCAL.log10_e(tokens, score) == pytest.approx(log10_e)


def test_a_distribution_without_a_table_has_none():
    assert load_null_table("binomial-7-0.5", 2) is None
