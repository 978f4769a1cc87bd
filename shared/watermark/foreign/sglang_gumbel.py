"""SGLang's Gumbel watermark, with one key or two (SGLang 0.5.23, `sampling/watermarking`).

A token's uniform number u comes from MurmurHash3 over the key, the hash of its context, and itself. With two
keys the context decides which of them counts. The context of the first tokens is the end of the prompt, which
is not known here: they are not scored. A token adds -ln(1 - u), an exponential variable without the mark;
`vllm_gumbel.py` has the same scores, from another PRF.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.foreign.foreign_mark import ForeignEvidence, ForeignMark, Tokens, smallest_count
from ttmark.shared.watermark.interruption import STEPS, pause
from ttmark.shared.watermark.nulls import LN10, log_gamma_tail
from ttmark.shared.watermark.prf import first_occurrences

_NOTHING = 45.0
"""What is smaller than a sum by this logarithm, some hundred times, changes none of 15 digits."""


def log_weighted_gamma_tail(threshold: float, shape: int, first: float, second: float) -> float:
    """ln P(first X + second Y >= threshold) for independent X, Y ~ Gamma(shape, 1), positive weights.

    Counted in the smaller weight, the other term is a gamma variable of shape `shape + K` with K negative
    binomial, so that the tail is a mixture of gamma tails of whole shapes. There are about as many terms as
    `shape` times the ratio of the weights; those left out add nothing to 15 digits.
    """
    if threshold <= 0.0:
        return 0.0
    wide, narrow = max(first, second), min(first, second)
    if wide == narrow:
        return log_gamma_tail(threshold / narrow, 2 * shape)
    ratio, reduced = narrow / wide, threshold / narrow
    mean = shape * (1.0 - ratio) / ratio
    # Of K = 0: its probability, the tail of shape 2 * shape, and the Poisson term that the tail ends with.
    log_weight, log_tail = shape * math.log(ratio), log_gamma_tail(reduced, 2 * shape)
    log_event = (2 * shape - 1) * math.log(reduced) - reduced - math.lgamma(2 * shape)
    total, done = log_weight + log_tail, 0
    # Twice beyond the mean each weight is a fixed share of the one before.
    while done < 2.0 * mean or log_weight > total - _NOTHING:
        pause()
        more = np.arange(done + 1, done + STEPS + 1)
        log_weights = log_weight + np.cumsum(np.log((shape - 1 + more) / more) + math.log1p(-ratio))
        log_events = log_event + np.cumsum(math.log(reduced) - np.log(2 * shape - 1 + more))
        log_tails = np.logaddexp.accumulate(np.concatenate([[log_tail], log_events]))[1:]
        terms = log_weights + np.minimum(log_tails, 0.0)
        total = float(np.logaddexp(total, np.logaddexp.reduce(terms)))
        log_weight, log_event, log_tail = (float(each[-1]) for each in (log_weights, log_events, log_tails))
        done += STEPS
    return min(0.0, total)


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class KeyScores:
    """Scores under one key.

    Attributes:
        weight: of the key in the sum over keys.
        scores: of each scored token [N], as the original computes them.
        least: no more than exponential variables [N], which those of numbers with few bits may exceed.
    """

    weight: float
    scores: Floats
    least: Floats


@dataclass(frozen=True, slots=True)
class GumbelText:
    """A text under one key, or under two whose scores are added with weights."""

    positions: Tokens
    keys: Sequence[KeyScores]

    def keeping(self, kept: NDArray[np.bool_]) -> "GumbelText":
        keys = [KeyScores(key.weight, key.scores[kept], key.least[kept]) for key in self.keys]
        return GumbelText(self.positions[kept], keys)

    def evidence(self, first: int, last: int) -> ForeignEvidence:
        score = math.fsum(key.weight * float(key.scores[first:last].sum()) for key in self.keys)
        least = math.fsum(key.weight * float(key.least[first:last].sum()) for key in self.keys)
        weights = [key.weight for key in self.keys]
        return ForeignEvidence(log10_tail(least, last - first, weights), score, last - first)


def log10_tail(total: float, count: int, weights: Sequence[float]) -> float:
    """log10 P(weighted sum of `count` exponential variables for each weight >= total)."""
    total = max(0.0, total)
    if len(weights) == 1:
        log_p = log_gamma_tail(total / weights[0], count)
    else:
        log_p = log_weighted_gamma_tail(total, count, *weights)
    return min(0.0, log_p / LN10)


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
        return self.context_window + 1

    def read(self, tokens: Tokens) -> GumbelText:
        """Scores a completion; of equal contexts, and of tokens after contexts of one hash, the first counts.

        The hash is the same under every key, so such tokens are one draw.
        """
        if tokens.size <= self.context_window:
            return GumbelText(tokens[:0], [KeyScores(1.0, np.zeros(0), np.zeros(0))])
        contexts = np.lib.stride_tricks.sliding_window_view(tokens, self.context_window)[:-1]
        fresh = first_occurrences(np.ascontiguousarray(contexts))
        hashed = _murmur3(list(contexts[fresh].astype(np.uint64).T), fresh.size)
        draws = np.column_stack([hashed.astype(np.int64), tokens[fresh + self.context_window]])
        kept = first_occurrences(draws)
        scored, (hashed, words) = fresh[kept] + self.context_window, draws[kept].T.astype(np.uint64)
        drawn = _murmur3([*_halves(self.key), hashed, words], scored.size)
        if self.key_b is not None:
            coin = _murmur3([*_halves(self.key), *_halves(self.key_b), hashed], scored.size)
            of_b = _murmur3([*_halves(self.key_b), hashed, words], scored.size)
            drawn = np.where(coin < np.uint64(int(self.mixing_probability * 2.0**_BITS)), drawn, of_b)
        numbers = drawn.astype(np.float64)
        scores, least = (-np.log1p(-(numbers + half) / 2.0**_BITS) for half in (0.5, 0.0))
        return GumbelText(scored, [KeyScores(1.0, scores, least)])

    def tokens_needed(self, log10_p: float) -> int:
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
