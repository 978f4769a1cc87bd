"""Draws watermarked blocks, those with the same watermark together."""

import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ttmark.gen_service.decoding.block import TandemBlock
from ttmark.gen_service.decoding.block_builder import NO_TOKEN
from ttmark.gen_service.decoding.errors import SequenceFailed, each_or_failed
from ttmark.gen_service.decoding.support import choose
from ttmark.shared.watermark import Watermark, key_lanes

Tokens = tuple[int, ...]


class Reweighter:
    """Reweights the joint distributions of complete blocks and draws from them (Algorithm 1, lines 14, 15).

    Attributes:
        seconds: spent on joint distributions, PRF and reweighting since the start.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def draw(self, blocks: Iterable[TandemBlock]) -> dict[TandemBlock, Tokens | SequenceFailed]:
        """The tokens of every block, cut after an end of text, or why it has none.

        Args:
            blocks: with a complete builder.
        """
        drawn: dict[TandemBlock, Tokens | SequenceFailed] = {}
        groups: dict[Hashable, list[TandemBlock]] = defaultdict(list)
        for block in blocks:
            groups[_identity(block.marking.watermark)].append(block)
        for group in groups.values():
            tokens = each_or_failed(self._draw_together, group)
            drawn |= zip(group, tokens, strict=True)
        return drawn

    def _draw_together(self, blocks: Sequence[TandemBlock]) -> list[Tokens]:
        """Tokens of blocks with one and the same watermark."""
        started = time.perf_counter()
        joints = [block.builder.joint() for block in blocks]
        keys = np.stack([key_lanes(block.marking.prf_key) for block in blocks])
        contexts = np.array([block.context for block in blocks], dtype=np.int64)
        offsets = np.cumsum([0, *(len(mass) for _, mass in joints)], dtype=np.int64)
        candidates = np.concatenate([tokens for tokens, _ in joints])
        probs = np.concatenate([mass for _, mass in joints])
        weighted = blocks[0].marking.watermark.reweight(keys, contexts, candidates, probs, offsets)
        self.seconds += time.perf_counter() - started
        return [
            _choose(candidates[start:stop], weighted[start:stop], block.uniform)
            for block, (start, stop) in zip(blocks, pairwise(offsets.tolist()), strict=True)
        ]


def _choose(candidates: NDArray[np.int64], mass: NDArray[np.float64], uniform: float) -> Tokens:
    """One of `candidates` [n, block_size] with probabilities proportional to `mass` [n]."""
    if not np.isfinite(mass).all():
        raise SequenceFailed("the watermark gave probabilities that are not finite")
    row = candidates[choose(mass, uniform)]
    return tuple(row[row != NO_TOKEN].tolist())


def _identity(watermark: Watermark) -> Hashable:
    """Equal for watermarks that reweight alike, so that they are computed together."""
    parameters = tuple(sorted(watermark.parameters.items()))
    return type(watermark), watermark.scheme, watermark.block_size, watermark.context_width, parameters
