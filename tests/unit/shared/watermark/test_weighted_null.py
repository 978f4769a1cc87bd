"""SynthID-Text's weighted score: exact tails against whole-number counting."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark.schemes.synthid import WeightedNull, layer_weights


def slow_counts(depth, blocks):
    """How many of the 2**(depth * blocks) outcomes give each total, with Python's whole numbers."""
    counts = {0: 1}
    for weight in layer_weights(depth).tolist() * blocks:
        grown = dict(counts)
        for total, ways in counts.items():
            grown[total + weight] = grown.get(total + weight, 0) + ways
        counts = grown
    return counts


@pytest.mark.parametrize(("depth", "blocks"), [(1, 7), (2, 5), (5, 1), (5, 40), (30, 1), (30, 6)])
def test_tail_equals_the_count_of_outcomes(depth, blocks):
    counts, null = slow_counts(depth, blocks), WeightedNull(depth)
    highest = blocks * int(null.maximum)
    for share in (0.01, 0.3, 0.45, 0.5, 0.55, 0.7, 0.9, 0.97, 0.999, 1.0):
        threshold = max(1, round(share * highest))
        ways = sum(count for total, count in counts.items() if total >= threshold)
        exact = math.log10(ways) - depth * blocks * math.log10(2)
        assert null.log10_tail(threshold, blocks) == pytest.approx(exact, rel=1e-8, abs=1e-10)


def test_tail_goes_far_below_ten_to_minus_three_hundred():
    null = WeightedNull(30)
    assert null.log10_tail(0.75 * 500 * null.maximum, 500) < -500
    assert null.log10_tail(500 * null.maximum, 500) == pytest.approx(-15_000 * math.log10(2))
    assert null.log10_tail(500 * null.maximum + 1, 500) == -math.inf


def test_weights_are_the_published_ones_times_depth_minus_one():
    assert np.allclose(layer_weights(30) / 29, np.linspace(10, 1, 30))
