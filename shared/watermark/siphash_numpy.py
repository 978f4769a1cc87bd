"""SipHash-2-4-128 for numpy alone: unsigned lanes updated in place, in chunks that stay in cache.

Gives the words of `shared.watermark.siphash`, which is its oracle in the tests.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shared.watermark.siphash import COMPRESSION_ROUNDS, FINALIZATION_ROUNDS, FIRST_HALF, SECOND_HALF, Lanes

UInt64 = NDArray[np.uint64]
Word = NDArray[np.int64] | int

# Rows worked on at once: the state and a scratch lane of five times 128 KiB.
CHUNK_ROWS = 16384


def compress(lanes: Lanes, words: Sequence[Word]) -> Lanes:
    """`siphash.compress`: new lanes [N] after absorbing `words`. The inputs are kept."""
    v0, v1, v2, v3 = (np.array(lane) for lane in lanes)
    for chunk in _chunks(v0.shape[0]):
        _Chunk(*(lane[chunk].view(np.uint64) for lane in (v0, v1, v2, v3))).absorb(words, chunk)
    return v0, v1, v2, v3


def compress_and_finalize(lanes: Lanes, words: Sequence[Word]) -> NDArray[np.int64]:
    """Absorb `words` into lanes [N] each and finalise: [N, 2] int64. The inputs are kept."""
    rows = lanes[0].shape[0]
    out = np.empty((rows, 2), dtype=np.uint64)
    for chunk in _chunks(rows):
        state = _Chunk(*(lane[chunk].view(np.uint64).copy() for lane in lanes))
        state.absorb(words, chunk)
        state.finalize(out[chunk])
    return out.view(np.int64)


class _Chunk:
    """The state of some rows and a scratch lane."""

    def __init__(self, v0: UInt64, v1: UInt64, v2: UInt64, v3: UInt64) -> None:
        self._v0, self._v1, self._v2, self._v3 = v0, v1, v2, v3
        self._scratch = np.empty_like(v0)

    def absorb(self, words: Sequence[Word], chunk: slice) -> None:
        for word in words:
            part = np.uint64(word % (1 << 64)) if isinstance(word, int) else word[chunk].view(np.uint64)
            self._v3 ^= part
            self._rounds(COMPRESSION_ROUNDS)
            self._v0 ^= part

    def finalize(self, out: UInt64) -> None:
        self._v2 ^= np.uint64(FIRST_HALF)
        self._rounds(FINALIZATION_ROUNDS)
        out[:, 0] = self._v0 ^ self._v1 ^ self._v2 ^ self._v3
        self._v1 ^= np.uint64(SECOND_HALF)
        self._rounds(FINALIZATION_ROUNDS)
        out[:, 1] = self._v0 ^ self._v1 ^ self._v2 ^ self._v3

    def _rounds(self, count: int) -> None:
        v0, v1, v2, v3, scratch = self._v0, self._v1, self._v2, self._v3, self._scratch
        for _ in range(count):
            v0 += v1
            _rotate_left(v1, 13, scratch)
            v1 ^= v0
            _rotate_left(v0, 32, scratch)
            v2 += v3
            _rotate_left(v3, 16, scratch)
            v3 ^= v2
            v0 += v3
            _rotate_left(v3, 21, scratch)
            v3 ^= v0
            v2 += v1
            _rotate_left(v1, 17, scratch)
            v1 ^= v2
            _rotate_left(v2, 32, scratch)


def _chunks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, rows))


def _rotate_left(lane: UInt64, bits: int, scratch: UInt64) -> None:
    np.right_shift(lane, np.uint64(64 - bits), out=scratch)
    np.left_shift(lane, np.uint64(bits), out=lane)
    np.bitwise_or(lane, scratch, out=lane)
