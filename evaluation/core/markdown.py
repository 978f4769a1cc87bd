"""Results as Markdown tables and intervals."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def clopper_pearson(hits: int, trials: int, confidence: float = 0.99) -> tuple[float, float]:
    """The two-sided Clopper-Pearson interval of a rate."""
    tail = (1.0 - confidence) / 2.0
    low = float(beta.ppf(tail, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1.0 - tail, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high


def ratio_interval(
    above: NDArray[np.float64], below: NDArray[np.float64], seed: int = 0, draws: int = 2000
) -> tuple[float, float, float]:
    """Ratio of means and its 95 % bootstrap interval over documents, which come in pairs."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, above.size, (draws, above.size))
    ratios = above[rows].mean(axis=1) / below[rows].mean(axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(above.mean() / below.mean()), float(low), float(high)


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean and its normal 95 % interval."""
    mean, error = float(values.mean()), float(values.std(ddof=1)) / np.sqrt(values.size)
    return mean, mean - 1.96 * error, mean + 1.96 * error


def median_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The distribution-free 95 % interval of the median, between two order statistics."""
    low, high = binom.interval(0.95, values.size, 0.5)
    ordered = np.sort(values)
    return float(ordered[int(low)]), float(ordered[min(int(high), values.size - 1)])
