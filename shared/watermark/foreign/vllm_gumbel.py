"""vLLM's Gumbel watermark, with one key or two (vLLM 0.32, PRF `philox4x32-10-v1`).

A token's uniform number comes from Philox over its context and itself, and the token with the largest
`u ** (1 / p)` is taken. Before the first token of a completion the context is filled up with -1.
"""

import hashlib
import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.foreign.foreign_mark import ForeignMark, Tokens, smallest_count
from ttmark.shared.watermark.foreign.sglang_gumbel import GumbelText, KeyScores, log10_tail
from ttmark.shared.watermark.prf import first_occurrences

Words = NDArray[np.uint64]
"""32-bit words, each in the low half of 64 bits."""
Block = tuple[Words, Words, Words, Words]

MASK: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_ROUNDS: Final = 10
_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL: Final = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))


def philox(counter: Block, key: tuple[Words, Words]) -> Block:
    """Philox4x32-10 (Salmon et al. 2011, https://doi.org/10.1145/2063384.2063405).

    Encrypts counters, four arrays [...] of words, under keys, two of the same shape.
    """
    first, second, third, fourth = counter
    low_key, high_key = key
    for _ in range(_ROUNDS):
        left, right = _MULTIPLIERS[0] * first, _MULTIPLIERS[1] * third
        first, third = (right >> _HALF) ^ second ^ low_key, (left >> _HALF) ^ fourth ^ high_key
        second, fourth = right & MASK, left & MASK
        low_key, high_key = (low_key + _WEYL[0]) & MASK, (high_key + _WEYL[1]) & MASK
    return first, second, third, fourth


_CONTEXT, _TOKEN = np.uint64(0x574D4358), np.uint64(0x574D544B)
_UNIFORM_BITS = 24
_COARSENESS = math.log1p(2.0**-_UNIFORM_BITS)
"""A score of a uniform number with 24 bits is at most this much more than an exponential variable."""
_BEST = _UNIFORM_BITS * math.log(2.0)
_LEAST = 0.01
"""Smallest share of a key whose p-value is computed; there are more terms for smaller ones."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class VllmGumbel(ForeignMark):
    """`GumbelWatermarkDetector`, or `DualKeyGumbelWatermarkDetector` where `alpha` is given.

    Attributes:
        key: 0 to 2**64 - 1.
        context_width: tokens before each token that its number depends on.
        alpha: share of the second key, 0 to 1; None: one key.

    Raises:
        ValueError: one is out of range.
    """

    key: int = field(repr=False)
    context_width: int = 4
    alpha: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.key < 1 << 64:
            raise ValueError("a key of vLLM is a whole number from 0 to 2**64 - 1")
        if not 1 <= self.context_width <= 64:
            raise ValueError(f"the context width must be 1 to 64, not {self.context_width}")
        if (
            self.alpha is not None
            and self.alpha not in (0.0, 1.0)
            and not _LEAST <= self.alpha <= 1.0 - _LEAST
        ):
            raise ValueError(f"alpha must be 0, 1, or {_LEAST} to {1 - _LEAST}, not {self.alpha}")

    @property
    def row_tokens(self) -> int:
        return self.context_width + 1

    def read(self, tokens: Tokens) -> GumbelText:
        """Scores a completion; of equal contexts the first alone counts."""
        padded = np.concatenate([np.full(self.context_width, -1), tokens])
        contexts = np.lib.stride_tricks.sliding_window_view(padded, self.context_width)[: tokens.size]
        scored = first_occurrences(np.ascontiguousarray(contexts))
        of_keys = []
        for key, weight in weighted_keys(self.key, self.alpha):
            drawn = uniform(key, contexts[scored], tokens[scored]).astype(np.float32)
            scores = -np.log1p(-drawn.astype(np.float64))
            of_keys.append(KeyScores(weight, scores, scores - _COARSENESS))
        return GumbelText(scored, of_keys)

    def tokens_needed(self, log10_p: float) -> int:
        weights = [weight for _, weight in weighted_keys(self.key, self.alpha)]
        return smallest_count(log10_p, lambda count: log10_tail(_BEST * count, count, weights))


def weighted_keys(key: int, alpha: float | None) -> list[tuple[int, float]]:
    """The keys of the PRF, those without weight left out."""
    if alpha is None:
        return [(key, 1.0)]
    derived = [
        int.from_bytes(hashlib.sha256(domain + key.to_bytes(8, "big")).digest()[:8], "big")
        for domain in (b"key_a", b"key_b")
    ]
    return [(each, weight) for each, weight in zip(derived, (1.0 - alpha, alpha), strict=True) if weight]


def uniform(key: int, contexts: NDArray[np.int64], tokens: NDArray[np.int64]) -> Floats:
    """The numbers in (0, 1) that `PhiloxPRF.uniform` gives for tokens [N] after their contexts [N, H]."""
    count, width = contexts.shape
    nothing = np.zeros(count, dtype=np.uint64)
    low, high = nothing + np.uint64(key & int(MASK)), nothing + np.uint64(key >> 32)
    of_context = contexts.astype(np.uint64) & MASK
    state: Block = (nothing + _CONTEXT, nothing + np.uint64(width), nothing, nothing)
    for start in range(0, width, 4):
        block = [
            of_context[:, place] if place < width else nothing + MASK - np.uint64(place - start)
            for place in range(start, start + 4)
        ]
        first, second, third, fourth = (word ^ mixed for word, mixed in zip(state, block, strict=True))
        state = philox((first, second, third, fourth), (low ^ np.uint64(start), high))
    words = tokens.astype(np.uint64) & MASK
    drawn = philox((words >> np.uint64(2), *state[:3]), (low ^ state[3], high ^ _TOKEN))
    chosen: Words = np.choose((words & np.uint64(3)).astype(np.int64), drawn)
    mantissas = chosen >> np.uint64(32 - _UNIFORM_BITS)
    uniform: Floats = (mantissas.astype(np.float64) + 1.0) / ((1 << _UNIFORM_BITS) + 1)
    return uniform
