"""SynthID-Text as transformers writes it (`SynthIDTextWatermarkLogitsProcessor`).

A linear congruential generator hashes the last tokens and the key of each layer; its low bits are a place
in a table of random bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.contexts import first_occurrences
from ttmark.shared.watermark.detectors.tokens import check_tokens
from ttmark.shared.watermark.foreign.evidence import NOTHING_SCORED, ForeignEvidence
from ttmark.shared.watermark.foreign.torch_random import randint

_MULTIPLIER, _INCREMENT = np.uint64(6364136223846793005), np.uint64(1)
_MOST_BITS = 20

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SynthIdText:
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

    def detect(self, tokens: Sequence[int] | NDArray[np.int64]) -> ForeignEvidence:
        """Tests a completion. `score` is the mean bit; equal contexts, and equal hashes, count once.

        A layer's key moves all places of a text by one random distance around the table, and each layer has a
        key of its own: the exact null is the sum over layers of what a text scores at each distance.
        """
        tokens = check_tokens(tokens)
        if tokens.size < self.ngram_len:
            return NOTHING_SCORED
        ngrams = np.lib.stride_tricks.sliding_window_view(tokens, self.ngram_len)
        fresh = first_occurrences(np.ascontiguousarray(ngrams[:, :-1]))
        places = self.places(ngrams[fresh])
        _, kept = np.unique(places, return_index=True)
        places = places[kept]
        bits = self.bits(places)
        null = _power_of(
            _layer_null(places, self.sampling_table_size, self.sampling_table_seed), len(self.keys)
        )
        tail = float(null[int(bits.sum()) :].sum())
        log10_p = min(0.0, float(np.log10(max(tail, np.finfo(np.float64).tiny))))
        return ForeignEvidence(log10_p, float(bits.mean()), int(places.size))

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


@lru_cache(maxsize=8)
def _table(size: int, seed: int) -> NDArray[np.int64]:
    return randint(seed, 2, size)


def _layer_null(places: NDArray[np.int64], size: int, seed: int) -> Floats:
    """P(k of the bits of a layer are 1), k = 0 to N, over all keys of the layer."""
    lines = np.zeros(size)
    # A hash h becomes the place (h + key) * multiplier + 1: all places are moved alike.
    at = (places.astype(np.uint64) * _MULTIPLIER % np.uint64(size)).astype(np.int64)
    np.add.at(lines, at, 1.0)
    spectrum = np.conj(np.fft.rfft(lines)) * np.fft.rfft(_table(size, seed).astype(np.float64))
    ones = np.rint(np.fft.irfft(spectrum, size)).astype(np.int64)
    return np.bincount(ones, minlength=places.size + 1) / size


def _power_of(pmf: Floats, count: int) -> Floats:
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, pmf)
    return total
