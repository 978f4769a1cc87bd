"""A KV group of vLLM's cache as probes see it: tables of blocks, scratch blocks, copies of whole blocks.

A branch is a pseudo-request that shares its parent's blocks but for the last one. That one is copied to a
scratch block, which vLLM's scheduler does not know of and to which the branch adds its own rows. A branch
that is chosen is copied back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ttmark.gen_service.decoding.filtered_tokens import Ints


@dataclass(frozen=True, slots=True)
class ScratchPlan:
    """Blocks of the branches of one probe, in one KV group.

    Attributes:
        tables: [branches, blocks] of each branch.
        sources, targets: [copies] blocks that are copied beforehand.
        slots: [rows] where each row's keys and values are written, branch by branch.
    """

    tables: Ints
    sources: Ints
    targets: Ints
    slots: Ints


def branch_blocks(lengths: Ints, depths: Ints, block_size: int) -> tuple[Ints, Ints]:
    """Of each branch the number of its first scratch block, from 0, and how many it has.

    One, or two where its rows go over the end of a block.
    """
    counts: Ints = (lengths + depths - 1) // block_size - lengths // block_size + 1
    return np.cumsum(counts) - counts, counts


def plan_scratch(tables: Ints, lengths: Ints, depths: Ints, block_size: int, first: int) -> ScratchPlan:
    """Where branches read and write.

    Args:
        tables: [branches, >= blocks] of the parents, one row for each branch.
        lengths: [branches] tokens of the parents, all in the cache.
        depths: [branches] rows of each branch, one for each token of its path.
        first: number of the first scratch block; as many follow as `branch_blocks` counts.
    """
    offsets, counts = branch_blocks(lengths, depths, block_size)
    start = lengths // block_size
    width = int((start + counts).max())
    own = np.zeros((len(tables), width), dtype=np.int64)
    own[:, : min(width, tables.shape[1])] = tables[:, :width]
    ids = first + offsets
    partial = lengths % block_size > 0
    sources = own[np.arange(len(own)), start][partial]
    branch = np.repeat(np.arange(len(own)), counts)
    block = np.arange(counts.sum()) - np.repeat(ids - first, counts)
    own[branch, start[branch] + block] = ids[branch] + block
    row = np.repeat(np.arange(len(own)), depths)
    step = np.arange(depths.sum()) - np.repeat(np.cumsum(depths) - depths, depths)
    position = lengths[row] + step
    slots = own[row, position // block_size] * block_size + position % block_size
    return ScratchPlan(own, sources, ids[partial], slots)


def plan_adoption(
    tables: Ints, branches: Ints, lengths: Ints, depths: Ints, block_size: int, first: int
) -> tuple[Ints, Ints]:
    """Copies by which branches become part of their parents: sources and targets, blocks.

    Args:
        tables: [adopted, >= blocks] of their parents as they are now, with a place for each row.
        branches: [adopted] their numbers among those of the plan.
        lengths, depths, first: as they were planned, of all branches.
    """
    offsets, counts = branch_blocks(lengths, depths, block_size)
    offsets, counts, start = offsets[branches], counts[branches], lengths[branches] // block_size
    owner = np.repeat(np.arange(len(branches)), counts)
    block = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return first + offsets[owner] + block, tables[owner, start[owner] + block]


class CacheGroup:
    """Layers that share a table of blocks.

    Args:
        runner: vLLM's model runner, with its cache.
        scratch: scratch blocks of each group; they follow those that the scheduler was told of.
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
