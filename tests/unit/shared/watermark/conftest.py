"""Watermarked text, and a count of pauses, that several tests of the core share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest

from ttmark.shared.watermark.prf import ContextTracker, key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark


class Counting:
    """An interruption that does nothing at a pause but count it."""

    pauses = 0

    def pause(self) -> None:
        self.pauses += 1

    def aside(self) -> AbstractContextManager[None]:
        self.pauses += 1
        return nullcontext()


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
