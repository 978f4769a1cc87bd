"""Estimates with confidence intervals: exact for rates, bootstrap for everything else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Sample = NDArray[np.float64]
Statistic = Callable[..., Sample]
"""Takes samples [..., n] and gives one value per leading index."""

RESAMPLES = 4_000
CHUNK = 500
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def percent(self) -> str:
        return f"{100 * self.estimate:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def clopper_pearson(successes: int, trials: int) -> Interval:
    """Exact 95 % interval of a binomial rate.

    Raises:
        ValueError: no trials, or more successes than trials.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"{successes} successes of {trials} trials")
    from scipy.stats import beta  # optional: `--help` works without it

    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - tail, successes + 1, trials - successes))
    return Interval(successes / trials, low, high)


def bootstrap(statistic: Statistic, *samples: NDArray[Any]) -> Interval:
    """Percentile bootstrap of 95 %; each sample [n] is resampled apart from the others.

    Raises:
        ValueError: a sample is empty.
    """
    if any(len(sample) == 0 for sample in samples):
        raise ValueError("a sample is empty")
    generator = np.random.default_rng(0)
    values = []
    for _ in range(RESAMPLES // CHUNK):
        picked = [sample[generator.integers(len(sample), size=(CHUNK, len(sample)))] for sample in samples]
        values.append(statistic(*picked))  # [CHUNK]
    low, high = np.percentile(np.concatenate(values), [2.5, 97.5])
    return Interval(float(statistic(*samples)), float(low), float(high))


def mean(sample: Sample) -> Interval:
    return bootstrap(lambda values: values.mean(axis=-1), sample)
