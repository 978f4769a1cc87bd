"""Slow, obvious references and data that several tests of the core share."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MASK = (1 << 64) - 1
GOLDEN = Path(__file__).parents[2] / "golden"


def _siphash_2_4_128(key: bytes, message: bytes) -> bytes:
    """SipHash-2-4-128 byte by byte with Python integers, after the paper and the reference code."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    v[1] ^= 0xEE

    def rotl(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (64 - bits))) & MASK

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotl(v[1], 13) ^ v[0]
            v[0] = rotl(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotl(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotl(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotl(v[1], 17) ^ v[2]
            v[2] = rotl(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return struct.pack("<QQ", first, v[0] ^ v[1] ^ v[2] ^ v[3])


@pytest.fixture(scope="session")
def siphash_reference() -> Callable[[bytes, bytes], bytes]:
    return _siphash_2_4_128


@pytest.fixture(scope="session")
def golden() -> Callable[[str], Any]:
    """Loads a golden-vector file by name."""
    return lambda name: json.loads((GOLDEN / f"{name}.json").read_text())
