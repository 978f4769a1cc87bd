"""Confidence intervals for rates and for ratios of means."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3g} [{self.low:.3g}, {self.high:.3g}]"


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Exact interval of a binomial rate.

    Raises:
        ValueError: no trials, or more successes than trials.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"{successes} successes of {trials} trials")
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - tail, successes + 1, trials - successes))
    return Interval(successes / trials, low, high)


def ratio_of_means(
    numerator: NDArray[np.float64],
    denominator: NDArray[np.float64],
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Ratio of two samples' means with a percentile bootstrap interval; the samples are resampled apart."""
    generator = np.random.default_rng(seed)

    def means(sample: NDArray[np.float64]) -> NDArray[np.float64]:
        picks = generator.integers(len(sample), size=(resamples, len(sample)))
        resampled: NDArray[np.float64] = sample[picks].mean(axis=1)  # [resamples]
        return resampled

    ratios = means(numerator) / means(denominator)
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(ratios, [tail, 100 - tail])
    return Interval(float(numerator.mean() / denominator.mean()), float(low), float(high))
