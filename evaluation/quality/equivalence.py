"""Are marked answers as unmarked ones are? Two one-sided tests of paired differences, with clusters."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ttmark.evaluation.intervals import CONFIDENCE, Interval, Sample

POWER = 0.9
LEAST_CLUSTERS = 10
"""With fewer, standard errors that are robust to clusters are too small."""
_ERROR = 1 - CONFIDENCE


@dataclass(frozen=True, slots=True)
class Margin:
    """A measure of an answer, and the difference that counts as none.

    Attributes:
        unit: after a figure; "%": values are shares, shown in percent.
        share: of the unmarked mean.
        least: the margin where that is less, in the measure's unit.
        event: a value is 0 or 1, or nearly, so that a sample in which none differs may have missed some.
    """

    measure: str
    unit: str
    share: float = 0.05
    least: float = 0.0
    event: bool = False

    def of(self, mean: float) -> float:
        """The margin where the unmarked mean is `mean`."""
        return max(self.share * abs(mean), self.least)

    def shown(self, value: float) -> str:
        """A value in the measure's unit."""
        return f"{100 * value:.2f} %" if self.unit == "%" else f"{value:.3g} {self.unit}"


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of one measure with the mark, less that without, over pairs that answer the same prompt.

    Attributes:
        unmarked: the mean without the mark.
        error: standard error of `difference`, robust to whatever pairs of one cluster have in common.
    """

    margin: Margin
    pairs: int
    clusters: int
    unmarked: float
    difference: float
    error: float

    @classmethod
    def of(
        cls, margin: Margin, marked: Sample, unmarked: Sample, clusters: Sequence[int]
    ) -> "Difference | None":
        """Of values [answers], paired by place, NaN where there is none; None for fewer clusters than
        `LEAST_CLUSTERS`.

        Args:
            clusters: of each pair [answers]; pairs of different clusters share neither prompt nor key.
        """
        known = np.isfinite(marked) & np.isfinite(unmarked)
        _, places = np.unique(np.asarray(clusters)[known], return_inverse=True)
        if not known.any() or (number := int(places.max()) + 1) < LEAST_CLUSTERS:
            return None
        differences = (marked - unmarked)[known]
        pairs, mean = len(differences), float(differences.mean())
        sums = np.bincount(places, differences - mean)
        error = math.sqrt(number / (number - 1) * float((sums**2).sum())) / pairs
        if margin.event:
            error = max(error, 1 / pairs)
        return cls(margin, pairs, number, float(unmarked[known].mean()), mean, error)

    @property
    def bound(self) -> float:
        """The margin, in the measure's unit."""
        return self.margin.of(self.unmarked)

    @property
    def interval(self) -> Interval:
        """Of the difference, 95 %."""
        from scipy.stats import t  # optional: `--help` works without it

        reach = self.error * float(t.ppf(1 - _ERROR / 2, self.clusters - 1))
        return Interval(self.difference, self.difference - reach, self.difference + reach)

    @property
    def p_unequal(self) -> float:
        """How likely a difference as near to 0 is, where the true one is the margin or more."""
        return self._tail(self.bound - abs(self.difference))

    @property
    def p_unchanged(self) -> float:
        """How likely a difference as far from 0 is, where there is none; two-sided."""
        return min(1.0, 2 * self._tail(abs(self.difference)))

    def _tail(self, distance: float) -> float:
        from scipy.stats import t

        if self.error == 0:
            return float(distance <= 0)
        return float(t.sf(distance / self.error, self.clusters - 1))

    def pairs_needed(self, tests: int) -> float:
        """Pairs with which equality is shown with `POWER` where it is true, the first of `tests` by Holm."""
        from scipy.stats import norm

        steps = float(norm.isf(_ERROR / tests) + norm.ppf((1 + POWER) / 2))
        return self.pairs * (steps * self.error / self.bound) ** 2 if self.bound else math.inf


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison says of one measure, corrected for the number of measures.

    Attributes:
        p_unequal, p_unchanged: by Holm's rule, over all measures.
        answers_needed: of an arm, for 90 % power where nothing changes; None: no number suffices.
    """

    difference: Difference
    p_unequal: float
    p_unchanged: float
    answers_needed: int | None

    @property
    def equal(self) -> bool:
        return self.p_unequal <= _ERROR

    @property
    def changed(self) -> bool:
        """Surely different, and not surely by less than the margin."""
        return not self.equal and self.p_unchanged <= _ERROR

    def __str__(self) -> str:
        margin, of = self.difference.margin, self.difference
        if self.equal:
            return f"equivalent within {margin.shown(of.bound)}"
        if self.changed:
            return f"changed by {'+' if of.difference > 0 else ''}{margin.shown(of.difference)}"
        return f"undecided, {self.answers_needed:,} needed" if self.answers_needed else "undecided"

    def stored(self) -> dict[str, Any]:
        interval = self.difference.interval
        return {
            **asdict(self),
            "bound": self.difference.bound,
            "low": interval.low,
            "high": interval.high,
            "verdict": str(self),
        }


def judged(differences: Sequence[Difference], answers: int) -> list[Verdict]:
    """Of the measures of one comparison.

    Either claim, equal or changed, is wrong of any measure with 5 % at most.

    Args:
        answers: of an arm, which gave the pairs; to an undecided measure as many again are needed at least.
    """
    unequal = holm([one.p_unequal for one in differences])
    unchanged = holm([one.p_unchanged for one in differences])
    verdicts = []
    for place, one in enumerate(differences):
        needed = one.pairs_needed(len(differences)) * answers / one.pairs
        if min(unequal[place], unchanged[place]) > _ERROR:
            needed = max(needed, 2 * answers)
        whole = math.ceil(needed) if math.isfinite(needed) else None
        verdicts.append(Verdict(one, unequal[place], unchanged[place], whole))
    return verdicts


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979), in their order."""
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(np.argsort(p_values).tolist()):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected
