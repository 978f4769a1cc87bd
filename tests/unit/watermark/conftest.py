"""Slow, obvious references and data that several tests of the core share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.harness.spec_detector.prf import siphash_2_4_128
from ttmark.shared.watermark import ContextTracker, Watermark, key_lanes

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture(scope="session")
def siphash_reference() -> Callable[[bytes, bytes], bytes]:
    """SipHash-2-4-128 byte by byte."""
    return siphash_2_4_128


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
