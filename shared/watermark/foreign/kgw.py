"""The green lists of Kirchenbauer et al. as transformers writes them (`WatermarkLogitsProcessor`, on a CPU).

A seed, from the tokens before and with `selfhash` from the token itself, shuffles the vocabulary; the first
part of it is green.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from ttmark.shared.watermark.detectors.tokens import check_tokens
from ttmark.shared.watermark.foreign.evidence import NOTHING_SCORED, ForeignEvidence
from ttmark.shared.watermark.foreign.torch_random import Permutation, randperm

_TABLE_SIZE = 1_000_003
_SEED_LIMIT = (1 << 64) - 1

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Kgw:
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
        if not 2 <= self.vocab_size < (1 << 32) // 20:
            raise ValueError(f"the vocabulary must have 2 to 214,748,363 tokens, not {self.vocab_size}")
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

    def detect(self, tokens: Sequence[int] | NDArray[np.int64]) -> ForeignEvidence:
        """Tests a completion. `score` is the number of green tokens; a token counts once under each seed.

        Over keys the green ones of n different tokens under a seed are hypergeometric, and those of different
        seeds independent.
        """
        tokens = check_tokens(tokens)
        if tokens.size and int(tokens.max()) >= self.vocab_size:
            raise ValueError(f"a token is not below the vocabulary size of {self.vocab_size}")
        drawn = self._drawn_under(tokens)
        if not drawn:
            return NOTHING_SCORED
        greens = sum(self._greens(seed, of_seed) for seed, of_seed in drawn.items())
        null = _sum_of([len(of_seed) for of_seed in drawn.values()], self.vocab_size, self.green)
        tail = float(null[greens:].sum())
        log10_p = min(0.0, float(np.log10(max(tail, np.finfo(np.float64).tiny))))
        return ForeignEvidence(log10_p, float(greens), sum(map(len, drawn.values())))

    def _drawn_under(self, tokens: NDArray[np.int64]) -> dict[int, set[int]]:
        """The tokens that are tested under each seed."""
        drawn: dict[int, set[int]] = defaultdict(set)
        own = self.seeding_scheme == "selfhash"
        for place in range(self.context_width - own, tokens.size):
            seed = self._seed(tokens[place - self.context_width + own : place + own])
            drawn[seed].add(int(tokens[place]))
        return dict(drawn)

    def _seed(self, context: NDArray[np.int64]) -> int:
        if self.seeding_scheme == "lefthash":
            return self.hashing_key * int(context[-1]) % _SEED_LIMIT & 0xFFFFFFFF
        hashed = self._table[context % _TABLE_SIZE] + 1
        products = np.int64(self.hashing_key) * hashed * hashed[-1]  # wraps, as torch's does
        return int(products.min()) % _SEED_LIMIT & 0xFFFFFFFF

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        return _hash_table(self.hashing_key)

    def _greens(self, seed: int, tokens: Iterable[int]) -> int:
        shuffled = Permutation(seed, self.vocab_size, self.green)
        return sum(shuffled.holds(token) for token in tokens)


@lru_cache(maxsize=16)
def _hash_table(key: int) -> NDArray[np.int64]:
    return randperm(key, _TABLE_SIZE)


def _sum_of(draws: Sequence[int], vocabulary: int, green: int) -> Floats:
    """P(k green in all), k = 0, 1, ...; each of `draws` takes that many tokens without putting them back."""
    sizes, counts = np.unique(draws, return_counts=True)
    total = np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        one = hypergeom.pmf(np.arange(size + 1), vocabulary, green, size)
        total = np.convolve(total, _power(one, count))
    return total


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
