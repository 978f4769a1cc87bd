"""Slow, obvious references and data that several tests of the core share."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttmark.shared.watermark import ContextTracker, Watermark, key_lanes

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


def _generate(
    watermark: Watermark, prf_key: bytes, length: int, seed: int, candidates: int = 40
) -> list[int]:
    """Watermarked text of a toy model: every block uniform over random candidates."""
    rng = np.random.default_rng(seed)
    tracker = ContextTracker(watermark.block_size, watermark.context_width)
    tokens: list[int] = []
    while len(tokens) + watermark.block_size <= length:
        blocks = np.unique(rng.integers(0, 60, (candidates, watermark.block_size)), axis=0)
        probs = np.full(len(blocks), 1 / len(blocks))
        context = tracker.next_context(tokens)
        if context is not None:
            offsets = np.array([0, len(blocks)])
            probs = watermark.reweight(key_lanes(prf_key)[None], np.array([context]), blocks, probs, offsets)
        tokens += blocks[rng.choice(len(blocks), p=probs)].tolist()
    return tokens


@pytest.fixture(scope="session")
def generate() -> Callable[..., list[int]]:
    """Writes watermarked tokens: generate(watermark, prf_key, length, seed, candidates)."""
    return _generate
