"""The null of weighted sums against enumeration, against draws, and against the null of equal weights."""

import itertools
import math

import numpy as np
import pytest

from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.nulls import BinomialNull, ExponentialNull, Null
from ttmark.shared.watermark.weighted_null import WeightedNull, fair_pmf
from ttmark.shared.watermark.weighted_sums import (
    lattice_step,
    most_weight,
    weighted_log10_tail,
    weighted_total,
)

NULLS = [
    Watermark("synthid", 2).null,
    Watermark("synthid", 2, parameters={"depth": 12, "weighted": True}).null,
    Watermark("mcmark", 2).null,
    Watermark("dipmark", 2).null,
    ExponentialNull(),
]


@pytest.mark.parametrize("null", [BinomialNull(3, 0.5), BinomialNull(2, 0.1), WeightedNull(3)])
def test_the_tail_is_the_sum_over_all_outcomes_of_a_few_blocks(null: Null) -> None:
    weights = np.array([1, 5, 5, 9])
    if isinstance(null, BinomialNull):
        chances = np.array(
            [
                math.comb(null.trials, k) * null.probability**k * (1 - null.probability) ** (null.trials - k)
                for k in range(null.trials + 1)
            ]
        )
    else:
        chances = fair_pmf(3)
    values = np.flatnonzero(chances)
    outcomes = np.array(list(itertools.product(values, repeat=len(weights))), dtype=np.float64)
    probability = chances[outcomes.astype(np.int64)].prod(axis=1)
    totals = weighted_total(null, outcomes, weights)
    for total in np.unique(totals).tolist():
        expected = float(probability[totals >= total].sum())
        assert 10 ** weighted_log10_tail(null, weights, total) == pytest.approx(expected, rel=1e-9)
    assert weighted_log10_tail(null, weights, int(totals.max()) + 1) == -math.inf


@pytest.mark.parametrize("null", NULLS, ids=lambda null: null.name)
def test_drawn_scores_exceed_a_total_as_often_as_its_tail_says(null: Null) -> None:
    generator = np.random.default_rng(1)
    weights = generator.integers(1, 33, 12)
    scores = null.draw(generator.integers(0, 2**64, size=(40_000, 12), dtype=np.uint64))
    totals = weighted_total(null, scores, weights)
    for level in (0.5, 0.1, 0.01):
        total = int(np.quantile(totals, 1 - level))
        tail = 10 ** weighted_log10_tail(null, weights, total)
        observed = float(np.mean(totals >= total))
        assert abs(observed - tail) < 4.5 * math.sqrt(tail * (1 - tail) / totals.size)


@pytest.mark.parametrize("null", [NULLS[0], *NULLS[2:4]], ids=lambda null: null.name)
def test_with_equal_weights_the_tail_is_that_of_the_plain_sum(null: Null) -> None:
    weights, total = np.ones(100, dtype=np.int64), round(130 * null.mean)
    assert weighted_log10_tail(null, weights, total) == pytest.approx(null.log10_tail(total, 100), rel=1e-6)


def test_one_exponential_block_has_the_tail_of_its_lattice_and_many_that_of_gamma() -> None:
    null = ExponentialNull()
    assert lattice_step(null) == 0.25
    assert weighted_log10_tail(null, np.array([8]), 320) == pytest.approx(-10 / math.log(10), rel=1e-9)
    # A wide lattice is nearly the variable itself: each block loses half a point of 1/128 in the mean.
    heavy = np.full(50, 32)
    points = 120 * 128 - 25
    assert weighted_log10_tail(null, heavy, points) == pytest.approx(null.log10_tail(120.0, 50), rel=2e-3)


def test_of_exponential_blocks_the_tail_is_that_of_their_convolution() -> None:
    weights, pmf = np.array([1, 3, 3, 12, 30, 32]), np.ones(1)
    for weight in weights:
        rate = lattice_step(ExponentialNull()) / weight
        pmf = np.convolve(pmf, -np.expm1(-rate) * np.exp(-rate * np.arange(3_000)))[:3_000]
    for total in (50, 300, 1_000):
        tail = 1.0 - float(pmf[:total].sum())
        assert 10 ** weighted_log10_tail(ExponentialNull(), weights, total) == pytest.approx(tail, rel=1e-8)


def test_a_tail_far_below_the_smallest_double_is_still_a_number() -> None:
    weights = np.repeat(np.arange(1, 33), 10)
    mean = int(weights.sum() / lattice_step(ExponentialNull()))
    falling = [weighted_log10_tail(ExponentialNull(), weights, times * mean) for times in (1, 2, 5, 12, 29)]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] < -330


def test_a_tail_that_would_need_too_wide_a_window_is_bounded_from_above() -> None:
    weights = np.array([32, *[1] * 400])
    total = 20_000 * 32 * 4
    # The largest alone reaches it with probability exp(-20,000).
    log10_p = weighted_log10_tail(ExponentialNull(), weights, total)
    assert -20_000 / math.log(10) <= log10_p < -300


def test_no_blocks_and_no_total_say_nothing() -> None:
    null = BinomialNull(30, 0.5)
    assert weighted_log10_tail(null, np.zeros(0, dtype=np.int64), 0) == 0.0
    assert weighted_log10_tail(null, np.array([3, 4]), 0) == 0.0


def test_weights_get_coarser_in_longer_texts_so_that_the_lattice_does_not_grow() -> None:
    assert [most_weight(blocks) for blocks in (0, 128, 512, 100_000)] == [32, 32, 16, 4]
