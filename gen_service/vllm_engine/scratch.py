"""Scratch blocks: where probed branches write their keys and values, unknown to vLLM's scheduler.

A branch is a pseudo-request that shares its parent's blocks but for the last one. That one is copied to a
scratch block, to which the branch adds its own rows. A branch that is chosen is copied back.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
