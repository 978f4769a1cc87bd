"""Copies of blocks, against numpy's."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ttmark.gen_service.features.vllm.cache_group import CacheGroup, stacked

LAYERS, BLOCKS = 3, 40


def caches_of(layout: str) -> list[torch.Tensor]:
    """Caches [blocks, heads, tokens, values] of layers, as they may lie in memory."""
    whole = torch.arange(LAYERS * BLOCKS * 2 * 4 * 2).float()
    if layout == "layer by layer":
        return list(whole.view(LAYERS, BLOCKS, 2, 4, 2))
    if layout == "block by block":
        return list(whole.view(BLOCKS, LAYERS, 2, 4, 2).transpose(0, 1))
    if layout == "apart":
        return [each.clone() for each in whole.view(LAYERS, BLOCKS, 2, 4, 2)]
    return list(whole.view(LAYERS, BLOCKS, 2, 4, 2))[:1]


@pytest.mark.parametrize("layout", ["layer by layer", "block by block", "apart", "one layer"])
def test_blocks_are_copied_in_every_layer(layout: str) -> None:
    caches = caches_of(layout)
    expected = [cache.numpy().copy() for cache in caches]
    names = [f"layer{n}" for n in range(len(caches))]
    found = {name: SimpleNamespace(kv_cache=cache) for name, cache in zip(names, caches, strict=True)}
    table = SimpleNamespace(block_size=4, block_table=SimpleNamespace(np=np.arange(12).reshape(3, 4)))
    config = SimpleNamespace(num_blocks=BLOCKS, kv_cache_groups=[SimpleNamespace(layer_names=names)] * 2)
    runner = SimpleNamespace(
        kv_cache_config=config,
        input_batch=SimpleNamespace(block_table=[None, table]),
        compilation_config=SimpleNamespace(static_forward_context=found),
    )
    group = CacheGroup(runner, 1, 5)
    assert group.first_scratch == BLOCKS - 5
    assert group.tables([2, 2, 0], 2).tolist() == [[8, 9], [8, 9], [0, 1]]
    rng = np.random.default_rng(0)
    sources = np.sort(rng.integers(0, 10, 12))
    targets = 20 + np.sort(rng.permutation(20)[:12])
    group.copy(sources, targets)
    group.copy(sources[:0], targets[:0])
    for cache, before in zip(caches, expected, strict=True):
        before[targets] = before[sources]
        np.testing.assert_array_equal(cache.numpy(), before)


def test_layers_that_lie_evenly_are_copied_in_one_operation() -> None:
    counts = {
        layout: len(stacked(caches_of(layout))) for layout in ("layer by layer", "block by block", "apart")
    }
    assert counts == {"layer by layer": 1, "block by block": 1, "apart": 3}
