"""The green lists of Kirchenbauer et al. as transformers writes them (`WatermarkLogitsProcessor`, on a CPU).

A seed, from the tokens before and with `selfhash` from the token itself, shuffles the vocabulary; the first
part of it is green.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.foreign.foreign_mark import ForeignEvidence, ForeignMark, Tokens
from ttmark.shared.watermark.foreign.torch_random import Permutation, randperm
from ttmark.shared.watermark.interruption import MadeOnce, aside, pause

_TABLE_SIZE = 1_000_003
_SEED_LIMIT = (1 << 64) - 1
# Each list takes time and memory in proportion; no model has as many tokens.
_MOST_TOKENS = 1 << 20
# Tokens, and green lists, between two pauses: a few milliseconds.
_STEPS, _LISTS = 256, 16

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Kgw(ForeignMark):
    """`WatermarkDetector` with `ignore_repeated_ngrams`; the arguments are those of `WatermarkingConfig`.

    Attributes:
        vocab_size: of the model's configuration, whose rows the processor sees.

    Raises:
        ValueError: one is out of range.
    """

    vocab_size: int
    hashing_key: int = field(default=15485863, repr=False)
    greenlist_ratio: float = 0.25
    seeding_scheme: Literal["lefthash", "selfhash"] = "lefthash"
    context_width: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.hashing_key < 1 << 63:
            raise ValueError("hashing_key must be a positive whole number below 2**63")
        if not 2 <= self.vocab_size <= _MOST_TOKENS:
            raise ValueError(f"vocab_size must be 2 to {_MOST_TOKENS}, not {self.vocab_size}")
        if not 0.0 < self.greenlist_ratio < 1.0 or not self.green:
            raise ValueError(f"the green share must be between 0 and 1, not {self.greenlist_ratio}")
        if self.seeding_scheme not in ("lefthash", "selfhash"):
            raise ValueError(f"the seeding scheme is lefthash or selfhash, not {self.seeding_scheme}")
        if not 1 <= self.context_width <= 64:
            raise ValueError(f"the context width must be 1 to 64, not {self.context_width}")

    @property
    def green(self) -> int:
        """Green tokens under each seed."""
        return int(self.vocab_size * self.greenlist_ratio)

    @property
    def row_tokens(self) -> int:
        return self.context_width if self.seeding_scheme == "selfhash" else 2

    def read(self, tokens: Tokens) -> "KgwScores":
        """Finds the green tokens of a completion; a token counts once under each seed.

        Tokens that the model does not have are not scored, nor with `lefthash` those after token 0, whose
        seed is 0 under every key.
        """
        own = self.seeding_scheme == "selfhash"
        drawn: dict[tuple[int, int], int] = {}
        for place in range(self.context_width - own, tokens.size):
            if place % _STEPS == 0:
                pause()
            if tokens[place] < self.vocab_size and (own or tokens[place - 1]):
                seed = self._seed(tokens[place - self.context_width + own : place + own])
                drawn.setdefault((seed, int(tokens[place])), place)
        greens = self._greens(list(drawn))
        return KgwScores(self, np.array(list(drawn.values()), dtype=np.int64), list(drawn), greens)

    def tokens_needed(self, log10_p: float) -> int:
        """So many tokens are green, each under a seed of its own."""
        warm_up = self.context_width - (self.seeding_scheme == "selfhash")
        return warm_up + math.ceil(log10_p / math.log10(self.green / self.vocab_size))

    def _seed(self, context: NDArray[np.int64]) -> int:
        if self.seeding_scheme == "lefthash":
            return self.hashing_key * int(context[-1]) % _SEED_LIMIT & 0xFFFFFFFF
        hashed = self._table[context % _TABLE_SIZE] + 1
        products = np.int64(self.hashing_key) * hashed * hashed[-1]  # wraps, as torch's does
        return int(products.min()) % _SEED_LIMIT & 0xFFFFFFFF

    @MadeOnce
    def _table(self) -> NDArray[np.int64]:
        return _hash_table(self.hashing_key)

    def _greens(self, drawn: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
        """Whether each token is green under its seed [N]; each seed's list is made once."""
        under: dict[int, list[int]] = defaultdict(list)
        for row, (seed, _) in enumerate(drawn):
            under[seed].append(row)
        greens = np.zeros(len(drawn), dtype=np.bool_)
        for number, (seed, rows) in enumerate(under.items()):
            if number % _LISTS == 0:
                pause()
            shuffled = Permutation(seed, self.vocab_size, self.green)
            greens[rows] = [shuffled.holds(drawn[row][1]) for row in rows]
        return greens


@dataclass(frozen=True, slots=True)
class KgwScores:
    """A text under one key.

    Attributes:
        drawn: seed and token of each scored token [N].
        greens: whether it is green [N].
    """

    mark: Kgw
    positions: Tokens
    drawn: Sequence[tuple[int, int]]
    greens: NDArray[np.bool_]

    def keeping(self, kept: NDArray[np.bool_]) -> "KgwScores":
        drawn = [self.drawn[row] for row in np.flatnonzero(kept).tolist()]
        return KgwScores(self.mark, self.positions[kept], drawn, self.greens[kept])

    def evidence(self, first: int, last: int) -> ForeignEvidence:
        """`score` is the number of green tokens.

        Over keys the green ones of n different tokens under a seed are hypergeometric, and those of different
        seeds independent.
        """
        greens = int(self.greens[first:last].sum())
        draws = list(Counter(seed for seed, _ in self.drawn[first:last]).values())
        with aside():
            null = _sum_of(draws, self.mark.vocab_size, self.mark.green)
        tail = float(null[greens:].sum())
        log10_p = min(0.0, float(np.log10(max(tail, np.finfo(np.float64).tiny))))
        return ForeignEvidence(log10_p, float(greens), last - first)


@lru_cache(maxsize=16)
def _hash_table(key: int) -> NDArray[np.int64]:
    return randperm(key, _TABLE_SIZE)


def _sum_of(draws: Sequence[int], vocabulary: int, green: int) -> Floats:
    """P(k green in all), k = 0, 1, ...; each of `draws` takes that many tokens without putting them back."""
    sizes, counts = np.unique(draws, return_counts=True)
    total = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        total = np.convolve(total, _power(_greens_of(size, vocabulary, green), count))
    return total


@lru_cache(maxsize=1024)
def _greens_of(size: int, vocabulary: int, green: int) -> Floats:
    """P(k of `size` tokens under one seed are green)."""
    ways = _log_choices(green, size) + _log_choices(vocabulary - green, size)[::-1]
    shares = np.exp(ways - ways.max())
    pmf: Floats = shares / shares.sum()
    return pmf


def _log_choices(of: int, most: int) -> Floats:
    """ln of the number of ways to choose 0, 1, ... `most` of so many."""
    left = np.maximum(0, of - np.arange(most))
    with np.errstate(divide="ignore"):  # there is no way to choose more than there are
        steps = np.log(left) - np.log(np.arange(1, most + 1))
    choices: Floats = np.concatenate([[0.0], np.cumsum(steps)])
    return choices


def _power(pmf: Floats, count: int) -> Floats:
    """Distribution of the sum of `count` variables, by squaring."""
    power = np.ones(1)
    while count:
        if count & 1:
            power = np.convolve(power, pmf)
        count >>= 1
        if count:
            pmf = np.convolve(pmf, pmf)
    return power
