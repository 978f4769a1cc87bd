"""SipHash-2-4-128 for numpy alone: unsigned lanes updated in place, in chunks that stay in cache.

Gives the words of `shared.watermark.siphash`, which is its oracle in the tests. The two halves of a
round are alike, so lanes are worked on in twos: half as many array operations.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shared.watermark.siphash import COMPRESSION_ROUNDS, FINALIZATION_ROUNDS, FIRST_HALF, SECOND_HALF, Lanes

UInt64 = NDArray[np.uint64]
Word = NDArray[np.int64] | int

# Rows worked on at once: the state and two scratch lanes of six times 128 KiB.
CHUNK_ROWS = 16384

# Left rotations of (v1, v3) in the first and of (v1, v3) in the second half of a round.
_FIRST_TURN, _SECOND_TURN = (np.array([[a], [b]], dtype=np.uint64) for a, b in ((13, 16), (17, 21)))
_HALF_WORD, _WORD = np.uint64(32), np.uint64(64)


def compress(lanes: Lanes, words: Sequence[Word]) -> Lanes:
    """`siphash.compress`: new lanes [N] after absorbing `words`. The inputs are kept."""
    v0, v1, v2, v3 = (np.empty_like(lane) for lane in lanes)
    for chunk in _chunks(v0.shape[0]):
        state = _Chunk(lanes, chunk)
        state.absorb(words, chunk)
        v0[chunk], v2[chunk] = state.even.view(np.int64)
        v1[chunk], v3[chunk] = state.odd.view(np.int64)
    return v0, v1, v2, v3


def compress_and_finalize(lanes: Lanes, words: Sequence[Word], halves: int) -> NDArray[np.int64]:
    """Absorb `words` into lanes [N] each and finalise: the first `halves` (1, 2) lanes of the output.

    [N, halves] int64, columns contiguous. The inputs are kept.
    """
    rows = lanes[0].shape[0]
    out = np.empty((halves, rows), dtype=np.uint64)
    for chunk in _chunks(rows):
        state = _Chunk(lanes, chunk)
        state.absorb(words, chunk)
        state.finalize(out[:, chunk])
    return out.view(np.int64).T


class _Chunk:
    """The state of some rows: lanes (v0, v2) and (v1, v3), and two lanes of scratch."""

    def __init__(self, lanes: Lanes, chunk: slice) -> None:
        v0, v1, v2, v3 = (lane[chunk].view(np.uint64) for lane in lanes)
        self.even, self.odd = np.stack([v0, v2]), np.stack([v1, v3])  # [2, rows]
        self._scratch = np.empty_like(self.even)

    def absorb(self, words: Sequence[Word], chunk: slice) -> None:
        for word in words:
            part = np.uint64(word % (1 << 64)) if isinstance(word, int) else word[chunk].view(np.uint64)
            self.odd[1] ^= part
            self._rounds(COMPRESSION_ROUNDS)
            self.even[0] ^= part

    def finalize(self, out: UInt64) -> None:
        """Fill `out` [1 or 2, rows]."""
        self.even[1] ^= np.uint64(FIRST_HALF)
        for half in out:
            self._rounds(FINALIZATION_ROUNDS)
            np.bitwise_xor(self.even, self.odd, out=self._scratch)
            np.bitwise_xor(self._scratch[0], self._scratch[1], out=half)
            self.odd[0] ^= np.uint64(SECOND_HALF)

    def _rounds(self, count: int) -> None:
        even, odd, scratch = self.even, self.odd, self._scratch
        for _ in range(count):
            even += odd
            _rotate_left(odd, _FIRST_TURN, scratch)
            odd ^= even
            _rotate_left(even[0], _HALF_WORD, scratch[0])
            even += odd[::-1]
            _rotate_left(odd, _SECOND_TURN, scratch)
            odd ^= even[::-1]
            _rotate_left(even[1], _HALF_WORD, scratch[1])


def _chunks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, rows))


def _rotate_left(lanes: UInt64, bits: UInt64 | np.uint64, scratch: UInt64) -> None:
    np.right_shift(lanes, _WORD - bits, out=scratch)
    np.left_shift(lanes, bits, out=lanes)
    np.bitwise_or(lanes, scratch, out=lanes)
