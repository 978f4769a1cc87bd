"""Exact tails against arbitrary-precision arithmetic, far below the smallest double."""

import math

import mpmath
import pytest

from ttmark.shared.watermark.nulls import log_binomial_tail, log_gamma_tail

mpmath.mp.dps = 60


def binomial_terms(trials, probability):
    """The probability of each number of successes, 0 to `trials`."""
    p = mpmath.mpf(probability)
    return [mpmath.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]


@pytest.mark.parametrize("probability", [0.5, 0.05, 0.25])
@pytest.mark.parametrize("trials", [1, 5, 30, 500, 3000])
def test_binomial_tail_equals_the_exact_sum(trials, probability):
    mean, terms = trials * probability, binomial_terms(trials, probability)
    for share in (0.0, 0.02, 0.5, 0.9, 0.99, 1.0, 1.01, 1.1, 1.5, 2.0, 5.0, 20.0):
        successes = round(mean * share)
        if successes > trials:
            continue
        expected = float(mpmath.log(mpmath.fsum(terms[successes:])))
        assert log_binomial_tail(successes, trials, probability) == pytest.approx(
            expected, rel=1e-9, abs=1e-11
        )


@pytest.mark.parametrize("shape", [1, 2, 10, 98, 1000, 5000])
def test_gamma_tail_equals_the_exact_integral(shape):
    for share in (1e-3, 0.5, 0.9, 0.99, 1.0, 1.01, 1.1, 2.0, 10.0, 36.0):
        threshold = shape * share
        exact = mpmath.gammainc(shape, mpmath.mpf(threshold), mpmath.inf, regularized=True)
        assert log_gamma_tail(threshold, shape) == pytest.approx(
            float(mpmath.log(exact)), rel=1e-9, abs=1e-11
        )


def test_tails_stay_finite_below_ten_to_minus_three_hundred():
    assert log_binomial_tail(15000, 15000, 0.5) == pytest.approx(15000 * math.log(0.5))
    assert log_gamma_tail(36.0 * 5000, 5000) < -100_000


def test_tails_at_the_ends_of_the_support():
    assert log_binomial_tail(0, 30, 0.5) == 0.0
    assert log_binomial_tail(31, 30, 0.5) == -math.inf
    assert log_gamma_tail(0.0, 3) == 0.0
