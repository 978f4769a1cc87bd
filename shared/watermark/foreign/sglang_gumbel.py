"""SGLang's Gumbel watermark, with one key or two (SGLang 0.5.23, `sampling/watermarking`).

A token's uniform number comes from MurmurHash3 over the key, the hash of its context, and itself. With two
keys the context decides which of them counts. The context of the first tokens is the end of the prompt, which
is not known here: they are not scored.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.contexts import first_occurrences
from ttmark.shared.watermark.foreign.evidence import ForeignMark, Tokens, smallest_count
from ttmark.shared.watermark.foreign.gumbel_text import GumbelText, KeyScores, log10_tail

_MASK, _BITS = np.uint64(0xFFFFFFFF), 32
_BEST = _BITS * math.log(2.0)

Words = NDArray[np.uint64]
"""32-bit words, each in the low half of 64 bits."""


@dataclass(frozen=True, slots=True)
class SglangGumbel(ForeignMark):
    """`WatermarkDetector.detect_tokens` without a prompt; it scores the first 4,096 contexts, this one all.

    Attributes:
        key: 0 to 2**64 - 1.
        key_b: a second one, which counts where the context's coin says so; None: one key.
        mixing_probability: that the first one counts.

    Raises:
        ValueError: one is out of range.
    """

    key: int = field(repr=False)
    key_b: int | None = field(default=None, repr=False)
    context_window: int = 4
    mixing_probability: float = 0.5

    def __post_init__(self) -> None:
        if not all(0 <= key < 1 << 64 for key in (self.key, self.key_b or 0)):
            raise ValueError("a key of SGLang has 1 to 16 hexadecimal digits")
        if not 1 <= self.context_window <= 64:
            raise ValueError(f"the context window must be 1 to 64, not {self.context_window}")
        if not 0.0 < self.mixing_probability < 1.0:
            raise ValueError(f"the mixing probability must be between 0 and 1, not {self.mixing_probability}")

    @property
    def row_tokens(self) -> int:
        """The token and its context."""
        return self.context_window + 1

    def read(self, tokens: Tokens) -> GumbelText:
        """Scores a completion; of equal contexts the first alone counts."""
        if tokens.size <= self.context_window:
            return GumbelText(tokens[:0], [KeyScores(1.0, np.zeros(0), np.zeros(0))])
        contexts = np.lib.stride_tricks.sliding_window_view(tokens, self.context_window)[:-1]
        fresh = first_occurrences(np.ascontiguousarray(contexts))
        scored = fresh + self.context_window
        hashed = _murmur3(list(contexts[fresh].astype(np.uint64).T), fresh.size)
        words = tokens[scored].astype(np.uint64)
        drawn = _murmur3([*_halves(self.key), hashed, words], fresh.size)
        if self.key_b is not None:
            coin = _murmur3([*_halves(self.key), *_halves(self.key_b), hashed], fresh.size)
            of_b = _murmur3([*_halves(self.key_b), hashed, words], fresh.size)
            drawn = np.where(coin < np.uint64(int(self.mixing_probability * 2.0**_BITS)), drawn, of_b)
        numbers = drawn.astype(np.float64)
        scores, least = (-np.log1p(-(numbers + half) / 2.0**_BITS) for half in (0.5, 0.0))
        return GumbelText(scored, [KeyScores(1.0, scores, least)])

    def tokens_needed(self, log10_p: float) -> int:
        """A token scores `_BEST` at most."""
        return self.context_window + smallest_count(
            log10_p, lambda count: log10_tail(_BEST * count, count, [1.0])
        )


def _halves(key: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(key & int(_MASK)), np.uint64(key >> 32)


def _murmur3(words: list[Words | np.uint64], count: int) -> Words:
    """MurmurHash3 x86 with 32 bits and seed 0 of `words`, each one or [count] -> [count]."""
    state: Words = np.zeros(count, dtype=np.uint64)
    for word in words:
        value = np.asarray(word) * np.uint64(0xCC9E2D51) & _MASK
        value = _rotated(value, 15) * np.uint64(0x1B873593) & _MASK
        state = (_rotated(state ^ value, 13) * np.uint64(5) + np.uint64(0xE6546B64)) & _MASK
    state ^= np.uint64(4 * len(words))
    state = (state ^ state >> np.uint64(16)) * np.uint64(0x85EBCA6B) & _MASK
    state = (state ^ state >> np.uint64(13)) * np.uint64(0xC2B2AE35) & _MASK
    return state ^ state >> np.uint64(16)


def _rotated(value: Words, by: int) -> Words:
    return (value << np.uint64(by) | value >> np.uint64(32 - by)) & _MASK
