"""The passes over a text, without a compiler: what `kernels.c` computes, to the bit.

All rows and priors take a step together; a step is one token.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.interruption import paused_ranges
from ttmark.shared.watermark.likelihood.hidden_markov_model import NEUTRAL, MarkovChain
from ttmark.shared.watermark.score_distributions import Cells, Floats

Words = NDArray[np.uint64]
Mass = TypeVar("Mass", float, Floats)

RESCALE = 16
BIG, SMALL, EXPONENT = 2.0**256, 2.0**-256, 256


class NumpyPasses:
    def forward(self, chain: MarkovChain, cells: Cells) -> tuple[Floats, NDArray[np.int64]]:
        paths, rows, tokens = len(chain.paths), len(cells), chain.tokens
        strengths = chain.paths[:, 0].astype(np.int64)
        steps = _Steps(chain)
        away = np.repeat(chain.paths[:, 5:6], rows, axis=1)
        gap = np.repeat(1.0 - chain.paths[:, 5:6], rows, axis=1)
        blocks = [np.zeros((paths, rows)) for _ in range(tokens)]
        exponents = np.zeros((paths, rows), dtype=np.int64)
        table = chain.ratios.ratios
        for first, stop in paused_ranges(0, chain.positions):
            for at in range(first, stop):
                leave, enter, find, lose, keep = steps.at(at)
                ended = blocks[0]
                left = ended * leave
                gap, away = gap + left * keep, away + left * lose
                entered, found = gap * enter, away * find
                begun = ((ended - left) + entered) + found
                ratio = table[:, chain.kinds[at], cells[:, at]][strengths]  # [paths, rows]
                blocks = [*blocks[1:], begun * ratio]
                gap, away = gap - entered, away - found
                if at % RESCALE == RESCALE - 1:
                    total = _total(gap, away, blocks)
                    big, small = total > BIG, total < SMALL
                    if big.any() or small.any():
                        factor = np.where(big, SMALL, np.where(small, BIG, 1.0))
                        gap, away, blocks = gap * factor, away * factor, [b * factor for b in blocks]
                        exponents += EXPONENT * (big.astype(np.int64) - small)
        return _total(gap, away, blocks), exponents

    def posterior(self, chain: MarkovChain, path: int, row: Cells) -> tuple[Floats, Floats, float, int]:
        one = _OnePath(chain, path, row)
        kept, whole, scale = one.forward()
        begins, apart = one.backward(kept, whole, scale)
        return begins, apart, whole, scale

    def draw(self, chain: MarkovChain, seed: int, first: int, along: NDArray[np.int64]) -> Cells:
        rows = along.size
        words = _RandomWords(seed, first, rows)
        start = words.chances()
        path, marked = np.maximum(along, 0), along >= 0
        strength = chain.paths[path, 0].astype(np.int64)
        state = np.where(start < chain.paths[path, 5], 2, 1)
        ready = np.zeros(rows, dtype=np.int64)
        steps = _Steps(chain)
        limits = chain.ratios.limits
        cells = np.empty((rows, chain.positions), dtype=np.uint16)
        for low, stop in paused_ranges(0, chain.positions):
            for at in range(low, stop):
                leave, enter, find, lose, keep = (part[:, 0][path] for part in steps.at(at))
                ended, gap, away = (np.where(state == number, 1.0, 0.0) for number in range(3))
                left = ended * leave
                gap, away = gap + left * keep, away + left * lose
                entered, found = gap * enter, away * find
                begun = ((ended - left) + entered) + found
                u, word = words.chances(), words.next()
                free = marked & (ready <= at)
                begins = free & (u < begun)
                skipped = np.where(u < begun + (gap - entered), 1, 2)
                state = np.where(begins, 0, np.where(free, skipped, state))
                ready = np.where(begins, at + chain.tokens, ready)
                kind = int(chain.kinds[at])
                drawn = np.searchsorted(limits[0, NEUTRAL, :-1], word, side="right")
                for number in range(len(limits)):
                    own = begins & (strength == number)
                    drawn[own] = np.searchsorted(limits[number, kind, :-1], word[own], side="right")
                cells[:, at] = drawn
        return cells


class _Steps:
    """Chances of the priors' steps, each [paths, 1]."""

    def __init__(self, chain: MarkovChain) -> None:
        _, self._leave, self._enter, self._find, self._lose, _, self._follows = chain.paths.T[:, :, None]
        self._surprise = chain.surprise.tolist()
        self._keep = 1.0 - self._lose

    def at(self, position: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """leave, enter, find, lose, keep."""
        x = self._follows * self._surprise[position]
        calm = 1.0 - x
        leave = self._leave + (1.0 - self._leave) * x
        return leave, self._enter * calm, self._find * calm, self._lose, self._keep


def _total(gap: Mass, away: Mass, blocks: list[Mass]) -> Mass:
    total = gap + away
    for block in blocks:
        total = total + block
    return total


class _OnePath:
    """Forward and backward over one row along one prior, in Python's numbers."""

    def __init__(self, chain: MarkovChain, path: int, row: Cells) -> None:
        strength, self._leave, self._enter, self._find, self._lose, self._away, self._follows = (
            float(value) for value in chain.paths[path]
        )
        self._surprise = chain.surprise.tolist()
        self._ratios = chain.ratios.ratios[int(strength), chain.kinds, row].tolist()
        self._tokens = chain.tokens

    def forward(self) -> tuple[list[tuple[float, float, float, int]], float, int]:
        """Mass before each token by state, with its exponent; the total and its exponent."""
        gap, away, blocks, scale = 1.0 - self._away, self._away, [0.0] * self._tokens, 0
        keep, kept = 1.0 - self._lose, []
        for at, ratio in enumerate(self._ratios):
            kept.append((blocks[0], gap, away, scale))
            leave, enter, find = self._step(at)
            left = blocks[0] * leave
            gap, away = gap + left * keep, away + left * self._lose
            entered, found = gap * enter, away * find
            begun = ((blocks[0] - left) + entered) + found
            blocks = [*blocks[1:], begun * ratio]
            gap, away = gap - entered, away - found
            total = _total(gap, away, blocks)
            if total > BIG or total < SMALL:
                factor = SMALL if total > BIG else BIG
                scale += EXPONENT if total > BIG else -EXPONENT
                gap, away, blocks = gap * factor, away * factor, [block * factor for block in blocks]
        return kept, _total(gap, away, blocks), scale

    def backward(
        self, kept: list[tuple[float, float, float, int]], whole: float, scale: int
    ) -> tuple[Floats, Floats]:
        """Posterior chances that a block begins at each token, and that it is skipped away."""
        begins, apart = np.empty(len(kept)), np.empty(len(kept))
        ended, in_gap, is_away, behind = [1.0] * 3, 1.0, 1.0, 0
        lose, keep = self._lose, 1.0 - self._lose
        for at in range(len(kept) - 1, -1, -1):
            before, gap, away, exponent = kept[at]
            leave, enter, find = self._step(at)
            worth = self._ratios[at] * ended[self._tokens - 1]
            left = before * leave
            here, there = gap + left * keep, away + left * lose
            begun = ((before - left) + here * enter) + there * find
            factor = float(np.ldexp(1.0 / whole, exponent + behind - scale))
            begins[at] = begun * worth * factor
            apart[at] = (there - there * find) * is_away * factor
            next_gap = enter * worth + (1.0 - enter) * in_gap
            next_away = find * worth + (1.0 - find) * is_away
            following = (1.0 - leave) * worth + leave * (keep * next_gap + lose * next_away)
            ended, in_gap, is_away = [following, *ended[:2]], next_gap, next_away
            total = following + next_gap + next_away
            if total > BIG or total < SMALL:
                turn = SMALL if total > BIG else BIG
                behind += EXPONENT if total > BIG else -EXPONENT
                in_gap, is_away, ended = in_gap * turn, is_away * turn, [value * turn for value in ended]
        return begins, apart

    def _step(self, at: int) -> tuple[float, float, float]:
        x = self._follows * self._surprise[at]
        calm = 1.0 - x
        return self._leave + (1.0 - self._leave) * x, self._enter * calm, self._find * calm


def chances(seed: int, first: int, count: int) -> Floats:
    """A number in [0, 1) for each of the texts number `first` on [count]."""
    return _RandomWords(seed % 2**64, first, count).chances()


class _RandomWords:
    """SplitMix64 (Steele, Lea and Flood 2014), one stream a row."""

    def __init__(self, seed: int, first: int, rows: int) -> None:
        numbers = np.arange(first, first + rows, dtype=np.uint64)
        self._counters = finalised(np.uint64(seed) ^ finalised(numbers))

    def next(self) -> Words:
        self._counters = self._counters + np.uint64(0x9E3779B97F4A7C15)
        return finalised(self._counters)

    def chances(self) -> Floats:
        """A number in [0, 1) of each row."""
        return (self.next() >> np.uint64(11)).astype(np.float64) * 2.0**-53


def finalised(z: Words) -> Words:
    """The last step of SplitMix64: a permutation in which every bit depends on all."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
