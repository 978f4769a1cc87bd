"""A KV group of vLLM's cache as probes see it: tables of blocks, scratch blocks, copies of whole blocks."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ttmark.gen_service.vllm_engine.scratch import Ints


class CacheGroup:
    """Layers that share a table of blocks.

    Args:
        runner: vLLM's model runner, with its cache.
        number: of the group.
        scratch: scratch blocks of each group; they follow those that the scheduler was told of.

    Attributes:
        layers: their names.
    """

    def __init__(self, runner: Any, number: int, scratch: int) -> None:
        config = runner.kv_cache_config
        self._table = runner.input_batch.block_table[number]
        self.layers: Sequence[str] = config.kv_cache_groups[number].layer_names
        context = runner.compilation_config.static_forward_context
        found = (context[layer].kv_cache for layer in self.layers)
        caches = list({cache.data_ptr(): cache for cache in found}.values())  # of layers that share one, once
        known = int(config.num_blocks) - scratch * len(config.kv_cache_groups)
        kernel_blocks = len(caches[0]) // int(config.num_blocks)
        self._first_scratch = (known + number * scratch) * kernel_blocks
        self._caches = stacked(caches)

    @property
    def block_size(self) -> int:
        """Tokens of a block of the attention kernel."""
        return int(self._table.block_size)

    @property
    def first_scratch(self) -> int:
        """The group's first scratch block, in the blocks of its attention kernel."""
        return self._first_scratch

    def tables(self, rows: Sequence[int], width: int) -> Ints:
        """The first blocks of rows of the batch, [rows, width]."""
        found: Ints = self._table.block_table.np[rows, :width]
        return found

    def copy(self, sources: Ints, targets: Ints) -> None:
        """Copies blocks to others that are no sources."""
        for source, start, stop in runs(sources, targets):
            for cache in self._caches:
                cache[:, start:stop] = cache[:, source : source + 1]


def stacked(caches: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Caches [blocks, ...] of layers as one view [layers, blocks, ...] if they lie evenly in one storage.

    Otherwise each is a view of its own, with one layer. What is copied for all layers at once costs one
    operation.
    """
    first, size = caches[0], caches[0].element_size()
    starts = [cache.data_ptr() for cache in caches]
    steps = {later - earlier for earlier, later in pairwise(starts)}
    alike = {(cache.shape, cache.stride(), cache.untyped_storage().data_ptr()) for cache in caches}
    if len(alike) > 1 or len(steps) != 1 or (step := steps.pop()) < 0 or step % size:
        return [cache[None] for cache in caches]
    return [first.as_strided((len(caches), *first.shape), (step // size, *first.stride()))]


def runs(sources: Ints, targets: Ints) -> Iterator[tuple[int, int, int]]:
    """Copies as (source, first target, behind the last): one for each run of targets of one source."""
    if not len(sources):
        return
    breaks = np.flatnonzero((np.diff(sources) != 0) | (np.diff(targets) != 1)) + 1
    for start, stop in zip([0, *breaks.tolist()], [*breaks.tolist(), len(sources)], strict=True):
        yield int(sources[start]), int(targets[start]), int(targets[stop - 1]) + 1
