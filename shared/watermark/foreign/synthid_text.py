"""SynthID-Text as transformers writes it (`SynthIDTextWatermarkLogitsProcessor`).

A linear congruential generator hashes the last tokens and the key of each layer; its low bits are a place
in a table of random bits.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.foreign.foreign_mark import ForeignEvidence, ForeignMark, Tokens
from ttmark.shared.watermark.foreign.torch_random import randint
from ttmark.shared.watermark.prf import first_occurrences

_MULTIPLIER, _INCREMENT = np.uint64(6364136223846793005), np.uint64(1)
_MOST_BITS = 20

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SynthIdText(ForeignMark):
    """The arguments are those of `SynthIDTextWatermarkingConfig`.

    Attributes:
        keys: of the layers.
        ngram_len: tokens that a bit depends on, the scored one included.
        sampling_table_size: a power of two; for others the p-value would not be exact.

    Raises:
        ValueError: one is out of range.
    """

    keys: tuple[int, ...] = field(repr=False)
    ngram_len: int = 5
    sampling_table_size: int = 1 << 16
    sampling_table_seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= len(self.keys) <= 256 or not all(-(1 << 63) <= key < 1 << 63 for key in self.keys):
            raise ValueError("SynthID-Text takes 1 to 256 keys of 64 bits")
        if not 2 <= self.ngram_len <= 65:
            raise ValueError(f"ngram_len must be 2 to 65, not {self.ngram_len}")
        size = self.sampling_table_size
        if size & (size - 1) or not 2 <= size <= 1 << _MOST_BITS:
            raise ValueError(
                f"the sampling table's size must be a power of two up to 2**{_MOST_BITS}, not {size}"
            )

    @property
    def row_tokens(self) -> int:
        return self.ngram_len

    def read(self, tokens: Tokens) -> "SynthIdScores":
        """Reads a completion; equal contexts, and equal hashes, count once."""
        if tokens.size < self.ngram_len:
            return SynthIdScores(self, tokens[:0], tokens[:0], self.bits(tokens[:0]))
        ngrams = np.lib.stride_tricks.sliding_window_view(tokens, self.ngram_len)
        fresh = first_occurrences(np.ascontiguousarray(ngrams[:, :-1]))
        places = self.places(ngrams[fresh])
        kept = np.sort(np.unique(places, return_index=True)[1])
        return SynthIdScores(self, fresh[kept] + self.ngram_len - 1, places[kept], self.bits(places[kept]))

    def tokens_needed(self, log10_p: float) -> int:
        return self.ngram_len - 1 + math.ceil(-log10_p / (len(self.keys) * math.log10(2.0)))

    def bits(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bits of each layer [N, layers] for n-grams that hash to `places` [N]."""
        keys = np.array(self.keys, dtype=np.int64).astype(np.uint64)
        hashed = (places.astype(np.uint64)[:, None] + keys) * _MULTIPLIER + _INCREMENT
        table = _table(self.sampling_table_size, self.sampling_table_seed)
        drawn: NDArray[np.int64] = table[(hashed % np.uint64(self.sampling_table_size)).astype(np.int64)]
        return drawn

    def places(self, ngrams: NDArray[np.int64]) -> NDArray[np.int64]:
        """The low bits of the hash of each n-gram [N, n]; higher ones have no part in the place."""
        hashed = np.ones(len(ngrams), dtype=np.uint64)
        for column in ngrams.T.astype(np.uint64):
            hashed = (hashed + column) * _MULTIPLIER + _INCREMENT
        low: NDArray[np.int64] = (hashed % np.uint64(self.sampling_table_size)).astype(np.int64)
        return low


@dataclass(frozen=True, slots=True)
class SynthIdScores:
    """A text under the keys of its layers.

    Attributes:
        places: low bits of the hash of each scored n-gram [N].
        bits: of each layer [N, layers].
    """

    mark: SynthIdText
    positions: Tokens
    places: Tokens
    bits: Tokens

    def keeping(self, kept: NDArray[np.bool_]) -> "SynthIdScores":
        return SynthIdScores(self.mark, self.positions[kept], self.places[kept], self.bits[kept])

    def evidence(self, first: int, last: int) -> ForeignEvidence:
        """`score` is the mean bit.

        A layer's key moves all places of a text by one random distance around the table, and each layer has a
        key of its own: the exact null is the sum over layers of what a text scores at each distance.
        """
        bits, mark = self.bits[first:last], self.mark
        places, size, seed = self.places[first:last], mark.sampling_table_size, mark.sampling_table_seed
        least, null = _null(places.tobytes(), size, seed, len(mark.keys))
        tail = float(null[max(0, int(bits.sum()) - least) :].sum())
        log10_p = min(0.0, float(np.log10(max(tail, np.finfo(np.float64).tiny))))
        return ForeignEvidence(log10_p, float(bits.mean()), last - first)


@lru_cache(maxsize=8)
def _table(size: int, seed: int) -> NDArray[np.int64]:
    return randint(seed, 2, size)


@lru_cache(maxsize=8)
def _spectrum(size: int, seed: int) -> NDArray[np.complex128]:
    return np.fft.rfft(_table(size, seed).astype(np.float64))


@lru_cache(maxsize=32)
def _null(places: bytes, size: int, seed: int, layers: int) -> tuple[int, Floats]:
    """As `_layer_null` of all layers together; it is the same under every key."""
    least, layer = _layer_null(np.frombuffer(places, dtype=np.int64), size, seed)
    return least * layers, reduce(np.convolve, [layer] * layers, np.ones(1))


def _layer_null(places: Tokens, size: int, seed: int) -> tuple[int, Floats]:
    """The fewest bits of a layer that are 1 under any key, and P(that many, one more, ...) over all keys."""
    lines = np.zeros(size)
    # A hash h becomes the place (h + key) * multiplier + 1: all places are moved alike.
    at = (places.astype(np.uint64) * _MULTIPLIER % np.uint64(size)).astype(np.int64)
    np.add.at(lines, at, 1.0)
    product = np.conj(np.fft.rfft(lines)) * _spectrum(size, seed)
    ones = np.rint(np.fft.irfft(product, size)).astype(np.int64)
    least = int(ones.min())
    return least, np.bincount(ones - least) / size
