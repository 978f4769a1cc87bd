"""Draws watermarked blocks, those with the same watermark together."""

import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ttmark.gen_service.decoding.block import NO_TOKEN, TandemBlock
from ttmark.gen_service.decoding.request import SequenceFailed, each_or_failed
from ttmark.gen_service.decoding.support import choose
from ttmark.shared.watermark import Watermark, key_lanes

Tokens = tuple[int, ...]


class Reweighter:
    """Reweights the joint distributions of complete blocks and draws from them (Algorithm 1, lines 14, 15).

    A block that is not to be marked is drawn from its joint distribution as it is.

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
        parts = [block.builder.parts() for block in blocks]
        keys = np.stack([key_lanes(block.marking.prf_key) for block in blocks])
        contexts = np.array([block.context for block in blocks], dtype=np.int64)
        sizes = [sum(len(mass) for _, mass in of_block) for of_block in parts]
        offsets = np.cumsum([0, *sizes], dtype=np.int64)
        candidates = np.concatenate([tokens for of_block in parts for tokens, _ in of_block])
        probs = np.concatenate([mass for of_block in parts for _, mass in of_block])
        weighted = blocks[0].marking.watermark.reweight(keys, contexts, candidates, probs, offsets)
        self.seconds += time.perf_counter() - started
        if not np.isfinite(weighted).all():
            raise SequenceFailed("the watermark gave probabilities that are not finite")
        return [
            _tokens(
                candidates[start + choose((weighted if block.marked else probs)[start:stop], block.uniform)]
            )
            for block, (start, stop) in zip(blocks, pairwise(offsets.tolist()), strict=True)
        ]


def _tokens(block: NDArray[np.int64]) -> Tokens:
    """The tokens of a block [block_size], without what fills it up."""
    return tuple(token for token in block.tolist() if token != NO_TOKEN)


def _identity(watermark: Watermark) -> Hashable:
    """Equal for watermarks that reweight alike, so that they are computed together."""
    parameters = tuple(sorted(watermark.parameters.items()))
    return type(watermark), watermark.scheme, watermark.block_size, watermark.context_width, parameters
