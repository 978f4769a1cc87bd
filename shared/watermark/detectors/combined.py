"""Direct, aligned and localized detection as one question: each has its share of the false positive rate.

A p-value is divided by the share of its detector, and the smallest counts: a weighted Bonferroni correction,
which holds whatever the three have in common. The shares depend on how a document is read, never on a score.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of the false positive rate; they sum to 1.

    With several phases a text from its start and passages pay 0.3 decades: twice what direct detection with
    all phases, or localized detection, asks alone. What alignment finds, the others often find too.

    Attributes:
        phases: of direct detection at each phase.
    """

    phases: tuple[float, ...]
    aligned: float
    localized: float

    @classmethod
    def of(cls, phases: int) -> "Shares":
        """Where direct detection tries so many phases."""
        return _SHARES[phases]

    @property
    def direct(self) -> float:
        """Of direct detection at all phases."""
        return sum(self.phases)

    def factors(self) -> list[float]:
        """What direct detection multiplies a p-value at each phase by, within its own share."""
        return [self.direct / phase for phase in self.phases]

    def log10_p(self, phases: Sequence[float], aligned: float, localized: float) -> float:
        """Of the three together, from the log10 p-value at each phase and of the others, uncorrected."""
        pairs = zip((*phases, aligned, localized), (*self.phases, self.aligned, self.localized), strict=True)
        return min(0.0, *(log10_p - math.log10(share) for log10_p, share in pairs))


_SHARES = {
    1: Shares((15 / 32,), 2 / 32, 15 / 32),
    2: Shares((8 / 32, 1 / 32), 7 / 32, 16 / 32),
    3: Shares((32 / 192, 3 / 192, 3 / 192), 58 / 192, 96 / 192),
}
