"""Paths through a text: their sums, what they say of each token, and rows that are drawn along them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.harness.spec_detector.ratios import NEUTRAL, STRENGTHS, Array, Ratios

STRONGER = 2
MIX = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Prior:
    """Chances of a path's steps; `strength` is the number of one in `STRENGTHS`."""

    strength: int
    leave: float
    find: float = 0.005
    lose: float = 0.1
    away: float = 0.5
    by_surprise: bool = False
    enter: float = 0.35

    def steps(self, x: float) -> tuple[float, float, float]:
        """leave, enter, find at a position."""
        x = x if self.by_surprise else 0.0
        return self.leave + (1 - self.leave) * x, self.enter * (1 - x), self.find * (1 - x)


@dataclass(frozen=True)
class Text:
    """What is known of a text without a key: tokens of a block; at the positions classes, a reader's x."""

    ratios: Ratios
    tokens: int
    classes: Array
    surprise: Array | None

    @property
    def positions(self) -> int:
        return int(self.classes.size)

    def x(self, at: int) -> float:
        return 0.0 if self.surprise is None else float(self.surprise[at])

    def priors(self) -> list[Prior]:
        """Those that E is the mean over."""
        kinds = [False] if self.surprise is None else [False, True]
        leaves = 0.015, 0.06, 0.2
        return [Prior(s, leave, by_surprise=kind) for kind in kinds for s in (0, 1) for leave in leaves]

    def with_neutral(self, which: Array) -> "Text":
        """The same text, in which those blocks say nothing."""
        classes = np.where(which, NEUTRAL, self.classes)
        return Text(self.ratios, self.tokens, classes, self.surprise)


def more_priors(positions: int) -> list[Prior]:
    """Those that draws come from besides."""
    rare = 1 / max(4, positions)
    return [
        Prior(STRONGER, 0.015),
        Prior(STRONGER, 0.06, 0.1, 0.3, 1.0),
        Prior(STRONGER, 0.2, rare, 0.3, 1.0),
        Prior(0, 0.015, 0.1, 0.1, 1.0),
        Prior(0, 0.06, rare, 0.3, 1.0),
        Prior(1, 0.06, rare, 0.3, 1.0),
    ]


def log10_sums(text: Text, priors: Sequence[Prior], cells: Array) -> Array:
    """log10 of the sum over paths for each prior and row of cells [rows, positions] -> [priors, rows]."""
    shape = len(priors), len(cells)
    strength = np.array([prior.strength for prior in priors])[:, None]
    lose, away = (np.array([[getattr(prior, name)] for prior in priors]) for name in ("lose", "away"))
    gap, away, scale = np.broadcast_to(1 - away, shape), np.broadcast_to(away, shape), np.zeros(shape)
    under_way = [np.zeros(shape) for _ in range(text.tokens)]
    for at in range(text.positions):
        leave, enter, find = np.array([prior.steps(text.x(at)) for prior in priors]).T[:, :, None]
        inside = under_way.pop(0)
        gap = gap + (1 - lose) * leave * inside
        away = away + lose * leave * inside
        begun = (1 - leave) * inside + enter * gap + find * away
        under_way.append(begun * text.ratios.worth[strength, text.classes[at], cells[:, at]])
        gap, away = (1 - enter) * gap, (1 - find) * away
        if at % 32 == 31:
            total = gap + away + sum(under_way)
            gap, away, under_way = gap / total, away / total, [one / total for one in under_way]
            scale = scale + np.log10(total)
    sums: Array = np.log10(gap + away + sum(under_way)) + scale
    return sums


def posterior(text: Text, prior: Prior, row: Array) -> tuple[Array, Array, float]:
    """Chances that a block begins, that a token is skipped away [positions]; log10 of the sum."""
    m, r = text.positions, text.tokens
    worth = text.ratios.worth[prior.strength, text.classes, row]
    inside, gaps, aways, logs = np.zeros(m + r), np.zeros(m), np.zeros(m), np.zeros(m)
    gap, away, log = 1 - prior.away, prior.away, 0.0
    for at in range(m):
        total = gap + away + inside[at : at + r].sum()
        gap, away, log = gap / total, away / total, log + np.log10(total)
        inside[at : at + r] /= total
        leave, enter, find = prior.steps(text.x(at))
        gap += (1 - prior.lose) * leave * inside[at]
        away += prior.lose * leave * inside[at]
        gaps[at], aways[at], logs[at] = gap, away, log
        inside[at + r] = ((1 - leave) * inside[at] + enter * gap + find * away) * worth[at]
        gap, away = (1 - enter) * gap, (1 - find) * away
    total = gap + away + inside[m:].sum()
    log += np.log10(total)
    # What the rest of the text is worth from each state on, at each position.
    ahead_in, ahead_gap, ahead_away = np.ones(m + r), np.ones(m + 1), np.ones(m + 1)
    ahead_log = np.zeros(m + r)
    begins, apart = np.zeros(m), np.zeros(m)
    for at in range(m - 1, -1, -1):
        leave, enter, find = prior.steps(text.x(at))
        base = ahead_log[at + 1]
        begin = worth[at] * ahead_in[at + r] * 10 ** (ahead_log[at + r] - base)
        from_gap = enter * begin + (1 - enter) * ahead_gap[at + 1]
        from_away = find * begin + (1 - find) * ahead_away[at + 1]
        from_in = (1 - leave) * begin + leave * ((1 - prior.lose) * from_gap + prior.lose * from_away)
        factor = 10 ** (logs[at] + base - log)
        begins[at] = ((1 - leave) * inside[at] + enter * gaps[at] + find * aways[at]) * begin * factor
        apart[at] = (1 - find) * aways[at] * ahead_away[at + 1] * factor
        most = max(from_gap, from_away, from_in)
        ahead_in[at], ahead_gap[at], ahead_away[at] = from_in / most, from_gap / most, from_away / most
        ahead_log[at] = base + np.log10(most)
    return begins, apart, float(log)


class Words:
    """SplitMix64, a stream for each row."""

    def __init__(self, seed: int, first: int, rows: int) -> None:
        numbers = np.arange(first, first + rows, dtype=np.uint64)
        self._z = _mix(np.uint64(seed % 2**64) ^ _mix(numbers))

    def word(self) -> Array:
        self._z = self._z + GOLDEN_RATIO
        return _mix(self._z)

    def chance(self) -> Array:
        return (self.word() >> np.uint64(11)).astype(np.float64) / 2.0**53


def _mix(z: Array) -> Array:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(MIX[0])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX[1])
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


def drawn(text: Text, priors: Sequence[Prior], seed: int, first: int, along: Array) -> Array:
    """Rows of cells number `first` on, each along the prior of `along` [rows], without a mark where -1."""
    cells = np.empty((along.size, text.positions), dtype=np.int64)
    words = Words(seed, first, along.size)
    start = words.chance()
    of_row = [priors[max(0, number)] for number in along.tolist()]
    strength = np.array([prior.strength for prior in of_row])
    lose = np.array([prior.lose for prior in of_row])
    state = np.where(start < [prior.away for prior in of_row], 2, 1)  # 0 inside, 1 in a gap, 2 away
    busy = np.zeros(along.size, dtype=np.int64)
    limits = np.minimum(np.cumsum(text.ratios.marked, axis=-1) * 2.0**64, 2.0**64 - 2.0**11).astype(np.uint64)
    for at in range(text.positions):
        of_prior = np.array([prior.steps(text.x(at)) for prior in priors])[np.maximum(along, 0)]
        leave, enter, find = of_prior.T
        inside, gap, away = ((state == number).astype(np.float64) for number in range(3))
        gap, away = gap + leave * inside * (1 - lose), away + leave * inside * lose
        begun = ((inside - leave * inside) + enter * gap) + find * away
        u, word = words.chance(), words.word()
        free = (along >= 0) & (busy == 0)
        begins = free & (u < begun)
        skips = np.where(u < begun + (gap - enter * gap), 1, 2)
        state = np.where(begins, 0, np.where(free, skips, state))
        busy = np.where(begins, text.tokens - 1, np.maximum(busy - 1, 0))
        cells[:, at] = np.searchsorted(limits[0, NEUTRAL, :-1], word, side="right")
        for number in range(len(STRENGTHS)):
            own = begins & (strength == number)
            of_class = limits[number, text.classes[at], :-1]
            cells[own, at] = np.searchsorted(of_class, word[own], side="right")
    return cells
