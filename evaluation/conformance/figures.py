"""Figures of a conformance report: shares of texts with their intervals, and the comparison of two runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.intervals import CONFIDENCE, Interval, clopper_pearson


@dataclass(frozen=True, slots=True)
class Figure:
    """How many of some texts were found at a rate.

    Attributes:
        section: what varies within a group of figures.
        name: which of them.
        rate: the false positive rate that was asked for, per text.
    """

    section: str
    name: str
    rate: float
    texts: int
    found: int

    @property
    def interval(self) -> Interval:
        """The share with its exact (Clopper-Pearson) 95 % interval."""
        return clopper_pearson(self.found, self.texts)

    def stored(self) -> dict[str, Any]:
        interval = self.interval
        numbers = {"texts": self.texts, "found": self.found}
        ends = {"share": interval.estimate, "low": interval.low, "high": interval.high}
        return {"section": self.section, "name": self.name, "rate": self.rate, **numbers, **ends}

    @classmethod
    def of_stored(cls, stored: dict[str, Any]) -> "Figure":
        return cls(stored["section"], stored["name"], stored["rate"], stored["texts"], stored["found"])


def figures_of(
    section: str, name: str, log10_p: NDArray[np.float64], rates: Sequence[float]
) -> Iterator[Figure]:
    """One at each rate, by the rule of detection: found where p is at most the rate; none without texts."""
    for rate in rates if log10_p.size else ():
        yield Figure(section, name, rate, log10_p.size, int((log10_p <= np.log10(rate)).sum()))


@dataclass(frozen=True, slots=True)
class FigureDifference:
    """One figure in two runs.

    Attributes:
        p: Fisher's exact test, two-sided: how often two runs of one deployment differ at least so much.
    """

    first: Figure
    second: Figure
    p: float


@dataclass(frozen=True, slots=True)
class Comparison:
    differences: tuple[FigureDifference, ...]

    @property
    def limit(self) -> float:
        """Runs of one deployment have a p below it with 5 % at most, in any figure (Bonferroni)."""
        return (1 - CONFIDENCE) / max(1, len(self.differences))

    @property
    def outside(self) -> list[FigureDifference]:
        return [one for one in self.differences if one.p < self.limit]

    @property
    def below_5_percent(self) -> int:
        """Figures whose own p is below 0.05; one in twenty at most are to be expected by chance."""
        return sum(one.p < 1 - CONFIDENCE for one in self.differences)


def compare(first: Sequence[Figure], second: Sequence[Figure]) -> Comparison:
    """The figures of two runs side by side.

    Raises:
        ValueError: they share none.
    """
    by_place = {(one.section, one.name, one.rate): one for one in second}
    pairs = [
        (one, by_place[place]) for one in first if (place := (one.section, one.name, one.rate)) in by_place
    ]
    if not pairs:
        raise ValueError("the two reports share no figure")
    return Comparison(tuple(FigureDifference(one, other, _fisher(one, other)) for one, other in pairs))


def _fisher(one: Figure, other: Figure) -> float:
    from scipy.stats import fisher_exact  # optional: `--help` works without it

    table = np.array([[one.found, one.texts - one.found], [other.found, other.texts - other.found]])
    return float(fisher_exact(table).pvalue)
