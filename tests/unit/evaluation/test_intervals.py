"""Confidence intervals."""

import numpy as np
import pytest

from ttmark.evaluation.intervals import clopper_pearson, mean


def test_clopper_pearson_agrees_with_published_bounds() -> None:
    assert clopper_pearson(0, 10).high == pytest.approx(0.3085, abs=1e-4)
    interval = clopper_pearson(5, 20)
    assert (interval.low, interval.high) == pytest.approx((0.0866, 0.4910), abs=1e-4)
    assert clopper_pearson(10, 10).low == pytest.approx(1 - 0.3085, abs=1e-4)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (3, 2), (-1, 5)])
def test_an_impossible_count_is_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        clopper_pearson(successes, trials)


def test_bootstrap_interval_of_a_mean_is_about_two_standard_errors_each_side() -> None:
    sample = np.random.default_rng(1).normal(3.0, 2.0, size=400)
    interval = mean(sample)
    error = sample.std() / np.sqrt(400)
    assert interval.estimate == pytest.approx(sample.mean())
    assert interval.low == pytest.approx(sample.mean() - 1.96 * error, abs=0.3 * error)
    assert interval.high == pytest.approx(sample.mean() + 1.96 * error, abs=0.3 * error)


def test_an_empty_sample_has_no_mean() -> None:
    with pytest.raises(ValueError, match="empty"):
        mean(np.array([]))
