"""A sharp p-value of E: importance sampling from the very paths that E is the mean over.

1 / E is a p-value of any text, one to two decades above the best one. The tail of E in a text without the
mark is P0(E >= x) = mean over draws y of w(y) 1{E(y) >= x}, w the density of y without the mark over that it
was drawn with. With x among its own draws the p-value holds for any number of draws (Harrison 2012,
Biometrika 99, "Conservative hypothesis tests and confidence intervals using importance sampling").

Draws serve every key: they come from the text, not from scores. Their number is fixed by a pilot that is
thrown away, before a score is seen.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.forward_backward import Passes, log10_mean, log10_of
from ttmark.shared.watermark.likelihood.forward_backward_numpy import chances
from ttmark.shared.watermark.likelihood.hidden_markov_model import MarkovChain, as_table, drawn_paths
from ttmark.shared.watermark.nulls import LN10
from ttmark.shared.watermark.score_distributions import Cells, Floats

_GATE, _GATE_FROM = 0.3, 1.5

# Shares of draws: without a mark, along each prior alike; the rest is fitted to the tail by the pilot.
_UNMARKED, _ALIKE = 0.1, 0.3
_PILOT, _PILOT_NUMBER, _ROUNDS = 512, 1 << 40, 16
_LEAST, _MOST = 32, 4096
_LEAST_SHARE = 1e-9
# Of draws times positions: a tenth of a second with compiled passes. Longer texts have fewer draws.
_MOST_CELLS = 3_000_000
_RUN_CELLS = 1 << 20
# Standard error of the rate that a set of draws leads to, over the promised one.
_ERROR = 0.1


def gate(needed: float) -> float:
    """The least log10 E that a p-value is drawn for, if 1 / E needs `needed` decades for a rate.

    Texts below it have the p-value 1 / E, which may be less sharp and is as valid: at rates that 1 / E can
    reach there, what is found lies within E >= 1 / rate; at others, only drawn p-values count.
    """
    return _GATE * (needed - _GATE_FROM)


@dataclass(frozen=True, slots=True, eq=False)
class Sampler:
    """What draws for a text come from.

    Attributes:
        chain: the text with its priors, and after them those for draws alone.
        own: number of its own.
        shares: of draws without a mark, then along each prior [1 + paths].
    """

    passes: Passes
    chain: MarkovChain
    own: int
    shares: Floats

    @classmethod
    def of(cls, passes: Passes, chain: MarkovChain) -> "Sampler":
        paths = np.concatenate([chain.paths, as_table(drawn_paths(chain.positions))])
        return cls(passes, chain.with_paths(paths), len(chain.paths), _with_fitted(np.zeros(len(paths))))

    def draw(self, seed: int, first: int, count: int) -> Cells:
        """Texts number `first` on [count, positions]."""
        limits = np.cumsum(self.shares)[:-1]
        along = np.searchsorted(limits, chances(seed + 1, first, count), side="right") - 1
        return self.passes.draw(self.chain, seed, first, along)

    def along(self, cells: Cells) -> Floats:
        """log10 of the density of rows of cells along each prior over that without a mark [paths, rows]."""
        return log10_of(*self.passes.forward(self.chain, cells))

    def evidence_and_odds(self, along: Floats) -> tuple[Floats, Floats]:
        """log10 E, and log10 of the density of draws over that without a mark, [rows]."""
        parts = np.concatenate([np.zeros((1, along.shape[1])), along])
        with np.errstate(divide="ignore"):
            weighted = parts + np.log10(self.shares * self.shares.size)[:, None]
        return log10_mean(along[: self.own]), log10_mean(weighted)

    def fitted(self, along: Floats, log10_rate: float) -> tuple["Sampler", int]:
        """Shares, and a number of draws, for the tail at a rate, by a pilot's densities along each prior.

        The shares make the pilot's tail most likely (expectation maximisation, the cross-entropy method).
        """
        tail, weights = self._tail(along, log10_rate)
        ratios = 10.0 ** (along[:, tail] - along[:, tail].max(axis=0))
        shares = np.full(len(along), 1.0 / len(along))
        for _ in range(_ROUNDS):
            parts = np.maximum(shares, _LEAST_SHARE)[:, None] * ratios
            shares = (parts / parts.sum(axis=0)) @ weights
        better = Sampler(self.passes, self.chain, self.own, _with_fitted(shares))
        density = better.evidence_and_odds(along[:, tail])[1]
        # Of the new weights: second moment over the square of the first, by the old ones.
        variance = float(np.sum(weights * 10.0 ** (-density - log10_rate))) - 1.0
        return better, math.ceil(max(0.0, variance) / _ERROR**2)

    def _tail(self, along: Floats, log10_rate: float) -> tuple[NDArray[np.int64], Floats]:
        """Draws with the largest E, as far as they have a chance of the rate, and weights that sum to 1."""
        log10_e, odds = self.evidence_and_odds(along)
        order = np.argsort(-log10_e, kind="stable")
        sums = np.cumsum(10.0 ** -odds[order]) / odds.size
        tail = order[: 1 + int(np.searchsorted(sums, 10.0**log10_rate))]
        weights = 10.0 ** -(odds[tail] - odds[tail].min())
        return tail, weights / weights.sum()


@dataclass(frozen=True, slots=True, eq=False)
class NullTail:
    """The tail of E in a text that does not carry the mark of a key.

    Attributes:
        sampler: what the draws come from.
        log10_e: of the draws, falling [draws].
        log10_sums: of their weights, up to each [draws].
    """

    sampler: Sampler
    log10_e: Floats
    log10_sums: Floats

    @property
    def draws(self) -> int:
        return int(self.log10_e.size)

    @classmethod
    def draw(cls, passes: Passes, chain: MarkovChain, log10_rate: float, seed: int) -> "NullTail":
        """For the text of `chain` with its priors, to decide at a rate; the same for the same arguments."""
        most = max(_LEAST, min(_MOST, _MOST_CELLS // max(1, chain.positions)))
        first = Sampler.of(passes, chain)
        pilot = first.along(first.draw(seed, _PILOT_NUMBER, max(_LEAST, min(_PILOT, most // 4))))
        sampler, needed = first.fitted(pilot, log10_rate)
        return cls.of(sampler, seed, min(most, max(_LEAST, needed)))

    @classmethod
    def of(cls, sampler: Sampler, seed: int, count: int) -> "NullTail":
        """From so many draws."""
        evidence, odds = [], []
        run = max(_LEAST, _RUN_CELLS // max(1, sampler.chain.positions))
        for start in range(0, count, run):
            cells = sampler.draw(seed, start, min(run, count - start))
            found = sampler.evidence_and_odds(sampler.along(cells))
            evidence.append(found[0])
            odds.append(found[1])
        log10_e = np.concatenate(evidence)
        order = np.argsort(-log10_e, kind="stable")
        weights = -np.concatenate(odds)[order] * LN10
        return cls(sampler, log10_e[order], np.logaddexp.accumulate(weights) / LN10)

    def log10_p(self, cells: Cells) -> Floats:
        """The p-values of the text with scores in rows of cells [rows, positions] -> [rows]."""
        return self.log10_p_of(*self.sampler.evidence_and_odds(self.sampler.along(cells)))

    def log10_p_of(self, log10_e: Floats, log10_odds: Floats) -> Floats:
        """The same from E and the odds of the draws [rows].

        Beyond the draws it falls as 1 / E from there on, not as their weights do: no draw came near.
        """
        reached = np.searchsorted(-self.log10_e, -log10_e, side="right")
        others = np.where(reached > 0, self.log10_sums[reached - 1], -np.inf)
        own = -log10_odds
        most = np.maximum(own, others)
        total = most + np.log10(10.0 ** (own - most) + 10.0 ** (others - most))
        beyond = np.where(reached == 0, self.log10_sums[0] + self.log10_e[0] - log10_e, -np.inf)
        found: Floats = np.minimum(0.0, np.maximum(total, beyond) - math.log10(self.draws + 1))
        return found


def _with_fitted(shares: Floats) -> Floats:
    """Shares of draws [1 + paths] from fitted ones [paths], which are 0 before a pilot."""
    alike = _ALIKE if shares.any() else 1.0 - _UNMARKED
    spread = alike / shares.size + (1.0 - _UNMARKED - alike) * shares
    return np.concatenate([[_UNMARKED], spread])
