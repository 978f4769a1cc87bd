"""Ragged helpers against a loop over segments."""

import numpy as np
import pytest

from ttmark.shared.watermark.ragged import Segments

LENGTHS = [1, 7, 1, 2, 300, 1]
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
VALUES = np.random.default_rng(0).integers(0, 9, OFFSETS[-1]).astype(float)
PARTS = np.split(VALUES, OFFSETS[1:-1])


@pytest.mark.parametrize("name", ["sum", "min"])
def test_reductions_equal_a_loop_over_segments(name):
    result = getattr(Segments(OFFSETS), name)(VALUES)
    assert result.tolist() == [getattr(part, name)() for part in PARTS]


def test_cumulative_sum_starts_again_in_each_segment():
    result = Segments(OFFSETS).cumulative_sum(VALUES)
    assert np.allclose(result, np.concatenate([np.cumsum(part) for part in PARTS]))


def test_order_sorts_within_segments_and_breaks_ties_by_row():
    order = Segments(OFFSETS).order(VALUES)
    expected = [start + np.argsort(part, kind="stable") for start, part in zip(OFFSETS, PARTS, strict=False)]
    assert np.array_equal(order, np.concatenate(expected))


def test_first_argmin_is_the_first_smallest_row():
    rows = Segments(OFFSETS).first_argmin(VALUES)
    expected = [start + np.argmin(part) for start, part in zip(OFFSETS, PARTS, strict=False)]
    assert rows.tolist() == expected


def test_normalize_makes_every_segment_sum_to_one():
    segments = Segments(OFFSETS)
    sums = segments.sum(segments.normalize(VALUES + 1e-300))
    assert np.allclose(sums, 1.0, rtol=1e-15)
