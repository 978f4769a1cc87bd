"""Scratch blocks against a cache that is written and read token by token."""

import numpy as np
import pytest

from ttmark.gen_service.features.vllm.cache_group import branch_blocks, plan_adoption, plan_scratch


@pytest.mark.parametrize("block_size", [2, 4, 32])
@pytest.mark.parametrize("deepest", [1, 2])
def test_a_branch_reads_its_parent_and_itself_and_disturbs_nobody(block_size: int, deepest: int) -> None:
    rng = np.random.default_rng(block_size + deepest)
    known, cache_blocks = 64, 128
    for _ in range(20):
        cache = np.full((cache_blocks, block_size), -1)
        parents = [rng.integers(1, 1 + 6 * block_size, endpoint=True) for _ in range(3)]
        free = iter(rng.permutation(known))
        width = max(parents) // block_size + 2
        own = np.zeros((3, width), dtype=np.int64)
        for parent, length in enumerate(parents):
            for position in range(length):
                if position % block_size == 0:
                    own[parent, position // block_size] = next(free)
                block = own[parent, position // block_size]
                cache[block, position % block_size] = 1000 * parent + position
        before = cache[:known].copy()
        owners = rng.integers(0, 3, 7)
        lengths = np.array([parents[owner] for owner in owners])
        depths = rng.integers(1, deepest, 7, endpoint=True)
        plan = plan_scratch(own[owners], lengths, depths, block_size, known)
        assert plan.tables.max() < known + branch_blocks(lengths, depths, block_size)[1].sum()
        cache[plan.targets] = cache[plan.sources]
        written = [-100 * branch - step for branch, depth in enumerate(depths) for step in range(depth)]
        cache.reshape(-1)[plan.slots] = written
        for branch, owner in enumerate(owners):
            positions = np.arange(lengths[branch] + depths[branch])
            read = cache[plan.tables[branch, positions // block_size], positions % block_size]
            prefix = [1000 * owner + position for position in range(lengths[branch])]
            assert read.tolist() == [*prefix, *(-100 * branch - step for step in range(depths[branch]))]
        np.testing.assert_array_equal(cache[:known], before)
        chosen = np.array([np.flatnonzero(owners == owner)[-1] for owner in np.unique(owners)])
        tables = own[np.unique(owners)]
        for table, branch in zip(tables, chosen, strict=True):  # the scheduler gives them what they need
            for position in range(lengths[branch], lengths[branch] + depths[branch]):
                if position % block_size == 0:
                    table[position // block_size] = next(free)
        sources, targets = plan_adoption(tables, chosen, lengths, depths, block_size, known)
        cache[targets] = cache[sources]
        for table, branch in zip(tables, chosen, strict=True):
            positions = np.arange(lengths[branch] + depths[branch])
            prefix = [1000 * owners[branch] + position for position in range(lengths[branch])]
            new = [-100 * branch - step for step in range(depths[branch])]
            assert cache[table[positions // block_size], positions % block_size].tolist() == [*prefix, *new]
