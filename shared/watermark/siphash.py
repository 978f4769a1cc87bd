"""SipHash-2-4-128 on 64-bit lanes (Aumasson and Bernstein 2012; reference code, 128-bit output).

The same text serves numpy and torch: lanes are int64 because torch's uint64 knows no shifts, so a
logical right shift is an arithmetic one under a mask.
"""

from collections.abc import Sequence

from shared.watermark.arrays import Array, namespace

Lanes = tuple[Array, Array, Array, Array]
"""The four 64-bit words of SipHash state, one element per message."""

INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573)
FIRST_HALF, SECOND_HALF = 0xEE, 0xDD
COMPRESSION_ROUNDS, FINALIZATION_ROUNDS = 2, 4


def initial_lanes(k0: Array, k1: Array) -> Lanes:
    """The state before the first message word, for key lanes `k0` and `k1` of the same shape."""
    c0, c1, c2, c3 = INITIAL
    return k0 ^ c0, k1 ^ c1, k0 ^ c2, k1 ^ c3


def compress(lanes: Lanes, words: Sequence[Array | int]) -> Lanes:
    """Absorb 64-bit message words (arrays, or one signed number for all rows) one after another."""
    for word in words:
        v0, v1, v2, v3 = lanes
        v0, v1, v2, v3 = _rounds((v0, v1, v2, v3 ^ word), COMPRESSION_ROUNDS)
        lanes = (v0 ^ word, v1, v2, v3)
    return lanes


def finalize(lanes: Lanes, halves: int = 2) -> Array:
    """The first `halves` (1, 2) 64-bit lanes of the 128-bit output, one row per message: [N, halves]."""
    v0, v1, v2, v3 = lanes
    v0, v1, v2, v3 = _rounds((v0, v1, v2 ^ FIRST_HALF, v3), FINALIZATION_ROUNDS)
    out = [v0 ^ v1 ^ v2 ^ v3]
    if halves == 2:
        v0, v1, v2, v3 = _rounds((v0, v1 ^ SECOND_HALF, v2, v3), FINALIZATION_ROUNDS)
        out.append(v0 ^ v1 ^ v2 ^ v3)
    return namespace(v0).stack(out, axis=1)


def _rounds(lanes: Lanes, count: int) -> Lanes:
    v0, v1, v2, v3 = lanes
    for _ in range(count):
        v0 = v0 + v1
        v1 = _rotate_left(v1, 13) ^ v0
        v0 = _rotate_left(v0, 32)
        v2 = v2 + v3
        v3 = _rotate_left(v3, 16) ^ v2
        v0 = v0 + v3
        v3 = _rotate_left(v3, 21) ^ v0
        v2 = v2 + v1
        v1 = _rotate_left(v1, 17) ^ v2
        v2 = _rotate_left(v2, 32)
    return v0, v1, v2, v3


def _rotate_left(lane: Array, bits: int) -> Array:
    return (lane << bits) | ((lane >> (64 - bits)) & ((1 << bits) - 1))
