"""The filters of a row, and the distribution that they leave: which tokens, and how likely each is."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

WINDOW = 512
"""Tokens of a row that a support lists at most where the filters leave more."""


@dataclass(frozen=True, slots=True)
class FilterParams:
    """Filters of one row; temperature 0 leaves the likeliest token, top_k 0 and top_p 1 are off."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def bounded(self) -> bool:
        """Whether a few of the likeliest tokens are all that can be left."""
        return self.greedy or 0 < self.top_k <= WINDOW


# Below it a temperature is zero in float32; what differs from the likeliest has no mass before.
COLDEST = 1e-30

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tail:
    """What a row leaves beyond its window, looked at only when a token of it is drawn.

    Attributes:
        mass: its share of the support, above 0.
        row: [vocab] logits, as they were filtered.
        peak: the largest of them.
        temperature: above 0.
        window: [n] ids that are not part of it.
        cut: the last token that the filters keep, as (logit, id): of equal logits the lower ids stay. None
            keeps all that has mass.
    """

    mass: float
    row: torch.Tensor
    peak: float
    temperature: float
    window: Ints
    cut: tuple[float, float] | None = None

    def weights(self) -> NDArray[np.float32]:
        """Probabilities of its tokens beside a peak of 1, zero elsewhere, [vocab]."""
        row = self.row.float()
        weights = row.sub(self.peak).div_(max(self.temperature, COLDEST)).exp_().cpu().numpy()
        weights[self.window] = 0.0
        if self.cut is not None:
            logits, (value, last) = row.cpu().numpy(), self.cut
            weights[(logits < value) | ((logits == value) & (np.arange(len(logits)) > last))] = 0.0
        kept: NDArray[np.float32] = weights
        return kept

    def draw(self, uniform: float) -> int:
        """A token of it by inversion of the cumulative sum over rising ids."""
        return choose(self.weights().astype(np.float64), uniform)


@dataclass(frozen=True, slots=True)
class Support:
    """Tokens with mass after the filters, likeliest first.

    Attributes:
        ids: [n] int64.
        probs: [n] float64, positive; with the mass of the tail they sum to 1.
        tail: less likely tokens that are not listed; None: there are none.
    """

    ids: Ints
    probs: Floats
    tail: Tail | None = None

    @property
    def tail_mass(self) -> float:
        return 0.0 if self.tail is None else self.tail.mass

    def whole(self) -> "Support":
        """The same with every token listed, for whoever measures distributions."""
        if self.tail is None:
            return self
        weights = self.tail.weights().astype(np.float64)
        ids = np.flatnonzero(weights)
        ids = ids[np.argsort(-weights[ids], kind="stable")]
        beyond = weights[ids] / weights.sum() * self.tail.mass
        return Support(np.concatenate([self.ids, ids]), np.concatenate([self.probs, beyond]))

    def probability(self, token: int) -> float:
        """Of one token; 0 where the filters leave it out."""
        listed = np.flatnonzero(self.ids == token)
        if listed.size:
            return float(self.probs[listed[0]])
        if self.tail is None:
            return 0.0
        weights = self.tail.weights().astype(np.float64)
        return float(weights[token] / weights.sum() * self.tail.mass)

    def draw(self, uniform: float) -> int:
        """A token of the distribution."""
        listed = float(self.probs.sum())
        target = uniform * (listed + self.tail_mass)
        if self.tail is None or target < listed:
            return int(self.ids[choose(self.probs, target / listed)])
        return self.tail.draw((target - listed) / self.tail.mass)


def window_weights(values: Floats, temperatures: Floats) -> Floats:
    """exp((value - peak) / temperature), [rows, width], of falling `values`; NaN in a row that is not finite.

    Args:
        temperatures: [rows]; 0 counts as 1.
    """
    warmth = np.where(temperatures == 0.0, 1.0, temperatures)[:, None]
    # A temperature next to zero makes the quotient infinite, which is right: such a token has no mass.
    with np.errstate(invalid="ignore", over="ignore"):
        weights: Floats = np.exp((values - values[:, :1]) / warmth)
    return weights


def choose(probs: Floats, uniform: float) -> int:
    """Index drawn from `probs` ([n], not necessarily normalised) by inversion of the cumulative sum.

    Never returns an index without mass.
    """
    through = probs.cumsum()
    index = int(through.searchsorted(uniform * through[-1], side="right"))
    # Beyond the end by rounding alone; an index inside it has mass.
    return index if index < len(probs) else int(np.flatnonzero(probs)[-1])
