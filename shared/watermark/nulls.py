"""The distribution of scores in text without watermark, per scheme exact (`docs/spec.md`)."""

import math
from dataclasses import dataclass
from typing import Protocol

from shared.watermark.tails import LN10, log_binomial_tail, log_gamma_tail


class Null(Protocol):
    """Score of one block under the null hypothesis; blocks are independent."""

    @property
    def mean(self) -> float: ...
    @property
    def standard_deviation(self) -> float: ...
    @property
    def maximum(self) -> float: ...

    def log10_tail(self, total: float, blocks: int) -> float:
        """log10 P(sum of `blocks` scores >= total), blocks >= 1."""
        ...


@dataclass(frozen=True, slots=True)
class BinomialNull:
    """A score that counts hits in `trials` layers, each with `probability`."""

    trials: int
    probability: float

    @property
    def mean(self) -> float:
        return self.trials * self.probability

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(self.trials * self.probability * (1.0 - self.probability))

    @property
    def maximum(self) -> float:
        return float(self.trials)

    def log10_tail(self, total: float, blocks: int) -> float:
        hits = math.ceil(total - 1e-6)
        return log_binomial_tail(hits, self.trials * blocks, self.probability) / LN10


@dataclass(frozen=True, slots=True)
class ExponentialNull:
    """A score that is a unit exponential variable; sums are Gamma(blocks, 1)."""

    maximum: float
    mean: float = 1.0
    standard_deviation: float = 1.0

    def log10_tail(self, total: float, blocks: int) -> float:
        return log_gamma_tail(total, blocks) / LN10
