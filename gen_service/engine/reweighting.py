"""Draws watermarked blocks, those of sequences with the same watermark together."""

import time
from collections import defaultdict
from collections.abc import Hashable
from collections.abc import Sequence as Items
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gen_service.decoding.randomness import Draw
from gen_service.decoding.support import choose
from gen_service.engine.errors import SequenceFailed
from gen_service.engine.request import Marking
from gen_service.engine.sequence import Sequence
from shared.watermark import Watermark, key_lanes

Block = tuple[int, ...]

_NO_TOKEN = -1


class Reweighter:
    """Reweights the joint distributions of complete blocks and draws from them (Algorithm 1, lines 14, 15).

    Attributes:
        seconds: spent on joint distributions, PRF and reweighting since the start.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def draw(self, sequences: Items[Sequence]) -> dict[Sequence, Block | SequenceFailed]:
        """A block for every sequence, cut after an end of text, or why it has none.

        Args:
            sequences: with a marking, a context and a complete builder.
        """
        drawn: dict[Sequence, Block | SequenceFailed] = {}
        groups: dict[Hashable, list[Sequence]] = defaultdict(list)
        for sequence in sequences:
            if sequence.marking is not None:
                groups[_identity(sequence.marking.watermark)].append(sequence)
        for group in groups.values():
            try:
                drawn.update(zip(group, self._draw_together(group), strict=True))
            except Exception:
                drawn.update((sequence, self._draw_alone(sequence)) for sequence in group)
        return drawn

    def _draw_alone(self, sequence: Sequence) -> Block | SequenceFailed:
        try:
            return self._draw_together([sequence])[0]
        except Exception as error:
            return SequenceFailed.because(error)

    def _draw_together(self, sequences: list[Sequence]) -> list[Block]:
        """Blocks of sequences with one and the same watermark."""
        started = time.perf_counter()
        markings: list[Marking] = [s.marking for s in sequences if s.marking is not None]
        joints = [s.builder.joint() for s in sequences if s.builder is not None]
        keys = np.stack([key_lanes(marking.prf_key) for marking in markings])
        contexts = np.array([s.context for s in sequences], dtype=np.int64)
        offsets = np.cumsum([0, *(len(mass) for _, mass in joints)], dtype=np.int64)
        blocks = np.concatenate([blocks for blocks, _ in joints])
        probs = np.concatenate([mass for _, mass in joints])
        weighted = markings[0].watermark.reweight(keys, contexts, blocks, probs, offsets)
        self.seconds += time.perf_counter() - started
        return [
            _choose(sequence, blocks[start:stop], weighted[start:stop])
            for sequence, (start, stop) in zip(sequences, pairwise(offsets.tolist()), strict=True)
        ]


def _choose(sequence: Sequence, blocks: NDArray[np.int64], mass: NDArray[np.float64]) -> Block:
    """One of `blocks` [n, block_size] with probabilities proportional to `mass` [n]."""
    if not np.isfinite(mass).all():
        raise SequenceFailed("the watermark gave probabilities that are not finite")
    uniform = sequence.draws.uniform(sequence.completion_length, Draw.BLOCK)
    row = blocks[choose(mass, uniform)]
    return tuple(row[row != _NO_TOKEN].tolist())


def _identity(watermark: Watermark) -> Hashable:
    """Equal for watermarks that reweight alike, so that they are computed together."""
    parameters = tuple(sorted(watermark.parameters.items()))
    return type(watermark), watermark.scheme, watermark.block_size, watermark.context_width, parameters
