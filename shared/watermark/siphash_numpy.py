"""SipHash-2-4-128 for numpy alone: unsigned lanes updated in place, in chunks that stay in cache.

Gives the words of `shared.watermark.siphash`, which is its oracle in the tests.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shared.watermark.siphash import COMPRESSION_ROUNDS, FINALIZATION_ROUNDS, FIRST_HALF, SECOND_HALF

UInt64 = NDArray[np.uint64]

# Rows worked on at once: the state and a scratch lane of five times 128 KiB.
CHUNK_ROWS = 16384


def compress_and_finalize(
    lanes: Sequence[NDArray[np.int64]], words: Sequence[NDArray[np.int64] | int]
) -> NDArray[np.int64]:
    """Absorb `words` into state `lanes` [N] each and finalise: [N, 2] int64. The inputs are kept."""
    rows = lanes[0].shape[0]
    out = np.empty((rows, 2), dtype=np.uint64)
    for start in range(0, rows, CHUNK_ROWS):
        chunk = slice(start, min(start + CHUNK_ROWS, rows))
        v0, v1, v2, v3 = (lane[chunk].view(np.uint64).copy() for lane in lanes)
        scratch = np.empty_like(v0)
        for word in words:
            part = _unsigned(word, chunk)
            v3 ^= part
            _rounds(v0, v1, v2, v3, scratch, COMPRESSION_ROUNDS)
            v0 ^= part
        v2 ^= np.uint64(FIRST_HALF)
        _rounds(v0, v1, v2, v3, scratch, FINALIZATION_ROUNDS)
        out[chunk, 0] = v0 ^ v1 ^ v2 ^ v3
        v1 ^= np.uint64(SECOND_HALF)
        _rounds(v0, v1, v2, v3, scratch, FINALIZATION_ROUNDS)
        out[chunk, 1] = v0 ^ v1 ^ v2 ^ v3
    return out.view(np.int64)


def _unsigned(word: NDArray[np.int64] | int, chunk: slice) -> UInt64 | np.uint64:
    if isinstance(word, int):
        return np.uint64(word % (1 << 64))
    return word[chunk].view(np.uint64)


def _rounds(v0: UInt64, v1: UInt64, v2: UInt64, v3: UInt64, scratch: UInt64, count: int) -> None:
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


def _rotate_left(lane: UInt64, bits: int, scratch: UInt64) -> None:
    np.right_shift(lane, np.uint64(64 - bits), out=scratch)
    np.left_shift(lane, np.uint64(bits), out=lane)
    np.bitwise_or(lane, scratch, out=lane)
