"""The probe: one more forward of vLLM's model over the branches of a step's blocks, between two commits.

A KV group of vLLM's cache as probes see it: tables of blocks, scratch blocks, copies of whole blocks.

Scratch blocks: where probed branches write their keys and values, unknown to vLLM's scheduler.

A branch is a pseudo-request that shares its parent's blocks but for the last one. That one is copied to a
scratch block, to which the branch adds its own rows. A branch that is chosen is copied back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.forward_context import set_forward_context
from vllm.v1.attention.backend import CommonAttentionMetadata

Ints = NDArray[np.int64]


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


Path = tuple[int, ...]
Branch = tuple[int, int, Path]
"""Row of the batch, tokens in the cache, and the path that is probed after them."""


class Probe:
    """Logits of branches, by vLLM's own attention over scratch blocks.

    Args:
        runner: vLLM's model runner.
        blocks: scratch blocks of each KV group; they follow those that the scheduler was told of.
    """

    def __init__(self, runner: Any, blocks: int) -> None:
        self._runner = runner
        self._blocks = blocks
        self._groups = [
            CacheGroup(runner, number, blocks)
            for number in range(len(runner.kv_cache_config.kv_cache_groups))
        ]
        self._probed: dict[tuple[int, Path], int] = {}  # of the last forward, by row of the batch and path
        self._last: tuple[Ints, Ints] = (np.empty(0, np.int64), np.empty(0, np.int64))  # lengths, depths

    def logits(self, branches: Sequence[Branch]) -> torch.Tensor:
        """What comes after each branch, [branches, vocab]; as many forwards as the scratch blocks need."""
        found = [self._forward(part) for part in self._parts(branches)]
        return found[0] if len(found) == 1 else torch.cat(found)

    def find(self, row: int, path: Path) -> int | None:
        """Number of a branch whose keys and values still lie in scratch blocks: one of the last forward."""
        return self._probed.get((row, path))

    def forget(self) -> None:
        """Finds no branch any more until the next forward."""
        self._probed = {}

    def length(self, branch: int) -> int:
        """Tokens before a branch."""
        return int(self._last[0][branch])

    def adopt(self, branches: Sequence[int], rows: Sequence[int]) -> None:
        """Copies branches of the last forward into the blocks of their parents.

        Args:
            rows: of the batch, where the parents are now; their tables reach as far as the branches do.
        """
        lengths, depths = self._last
        for group in self._groups:
            tables = group.tables(rows, int((lengths + depths - 1).max()) // group.block_size + 1)
            chosen = np.array(branches, dtype=np.int64)
            group.copy(*plan_adoption(tables, chosen, lengths, depths, group.block_size, group.first_scratch))

    def _parts(self, branches: Sequence[Branch]) -> Iterator[Sequence[Branch]]:
        deepest = max(len(path) for _, _, path in branches)
        size = max(1, self._blocks // (1 if deepest == 1 else 2))
        for start in range(0, len(branches), size):
            yield branches[start : start + size]

    def _forward(self, branches: Sequence[Branch]) -> torch.Tensor:
        runner, device = self._runner, self._runner.device
        self._probed = {}
        lengths = np.array([length for _, length, _ in branches], dtype=np.int64)
        depths = np.array([len(path) for _, _, path in branches], dtype=np.int64)
        ids = torch.tensor([token for _, _, path in branches for token in path], device=device)
        ends = np.cumsum(depths)
        positions = np.repeat(lengths - ends + depths, depths) + np.arange(ends[-1])
        shared = {
            "starts": torch.from_numpy(np.concatenate([[0], ends])).int(),
            "lengths": torch.from_numpy(lengths + depths).int(),
            "positions": torch.from_numpy(positions).to(device),
        }
        attention: dict[str, Any] = {}
        slots: dict[str, torch.Tensor] = {}
        for number in range(len(self._groups)):
            self._plan_group(number, branches, lengths, depths, shared, attention, slots)
        with set_forward_context(attention, runner.vllm_config, num_tokens=len(ids), slot_mapping=slots):
            hidden = runner.model(input_ids=ids, positions=shared["positions"])
        if len(ids) > len(branches):
            hidden = hidden[torch.from_numpy(ends - 1).to(device)]
        logits: torch.Tensor = runner.model.compute_logits(hidden)
        self._probed = {(row, path): number for number, (row, _, path) in enumerate(branches)}
        self._last = lengths, depths
        return logits

    def _plan_group(
        self,
        number: int,
        branches: Sequence[Branch],
        lengths: Ints,
        depths: Ints,
        shared: dict[str, torch.Tensor],
        attention: dict[str, Any],
        slots: dict[str, torch.Tensor],
    ) -> None:
        """Copies a KV group's blocks, and puts its layers' metadata and slots into the last two arguments."""
        runner, device, group = self._runner, self._runner.device, self._groups[number]
        width = int((lengths + depths - 1).max()) // group.block_size + 1
        tables = group.tables([row for row, _, _ in branches], width)
        plan = plan_scratch(tables, lengths, depths, group.block_size, group.first_scratch)
        group.copy(plan.sources, plan.targets)
        written = torch.from_numpy(plan.slots).to(device)
        common = CommonAttentionMetadata(
            query_start_loc=shared["starts"].to(device),
            query_start_loc_cpu=shared["starts"],
            seq_lens=shared["lengths"].to(device),
            num_reqs=len(branches),
            num_actual_tokens=len(written),
            max_query_len=int(depths.max()),
            max_seq_len=int(shared["lengths"].max()),
            block_table_tensor=torch.from_numpy(plan.tables).int().to(device),
            slot_mapping=written,
            causal=True,
            positions=shared["positions"],
            is_prefilling=torch.zeros(len(branches), dtype=torch.bool),
            seq_lens_cpu_upper_bound=shared["lengths"],
        )
        for part in runner.attn_groups[number]:
            built = part.get_metadata_builder(0).build(0, common)
            attention.update(dict.fromkeys(part.layer_names, built))
        slots.update(dict.fromkeys(group.layers, written))
