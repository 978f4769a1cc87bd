"""Ragged helpers against a loop over segments, numpy and torch."""

import numpy as np
import pytest
import torch

from shared.watermark.ragged import Segments

LENGTHS = [1, 7, 1, 2, 300, 1]
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
VALUES = np.random.default_rng(0).integers(0, 9, OFFSETS[-1]).astype(float)
PARTS = np.split(VALUES, OFFSETS[1:-1])


@pytest.fixture(params=[np.asarray, torch.asarray], ids=["numpy", "torch"])
def backend(request):
    return request.param


@pytest.mark.parametrize("name", ["sum", "min"])
def test_reductions_equal_a_loop_over_segments(backend, name):
    result = getattr(Segments(backend(OFFSETS)), name)(backend(VALUES))
    assert np.asarray(result).tolist() == [getattr(part, name)() for part in PARTS]


def test_cumulative_sum_starts_again_in_each_segment(backend):
    result = Segments(backend(OFFSETS)).cumulative_sum(backend(VALUES))
    assert np.allclose(np.asarray(result), np.concatenate([np.cumsum(part) for part in PARTS]))


def test_order_sorts_within_segments_and_breaks_ties_by_row(backend):
    order = np.asarray(Segments(backend(OFFSETS)).order(backend(VALUES)))
    expected = [start + np.argsort(part, kind="stable") for start, part in zip(OFFSETS, PARTS, strict=False)]
    assert np.array_equal(order, np.concatenate(expected))


def test_first_argmin_is_the_first_smallest_row(backend):
    rows = np.asarray(Segments(backend(OFFSETS)).first_argmin(backend(VALUES)))
    expected = [start + np.argmin(part) for start, part in zip(OFFSETS, PARTS, strict=False)]
    assert rows.tolist() == expected


def test_normalize_makes_every_segment_sum_to_one(backend):
    segments = Segments(backend(OFFSETS))
    sums = np.asarray(segments.sum(segments.normalize(backend(VALUES + 1e-300))))
    assert np.allclose(sums, 1.0, rtol=1e-15)
