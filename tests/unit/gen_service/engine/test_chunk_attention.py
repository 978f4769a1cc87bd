"""Attention of a prompt's chunk against one softmax over everything that it sees."""

import pytest
import torch

from ttmark.gen_service.engine.model import attention
from ttmark.gen_service.engine.model.attention import Arena, Chunk, KvCache, attend_chunk
from ttmark.gen_service.engine.model.tree_attention import visible

HEADS, KV_HEADS, DIM, SCALE = 6, 2, 16, 0.25
BASE = 7


def arena_of(length: int, dtype: torch.dtype) -> Arena:
    generator = torch.Generator().manual_seed(length)
    rows = torch.randn(length, 2, KV_HEADS, DIM, generator=generator).to(dtype)
    return KvCache(length + 2 * BASE).write(0, torch.arange(BASE, BASE + length), rows)


def reference(
    query: torch.Tensor, arena: Arena, end: int, window: int | None, sinks: torch.Tensor | None
) -> torch.Tensor:
    """[n, heads, dim] in float64, each query head with its own copy of the keys."""
    keys, values = (
        side[0, :, BASE : BASE + end].double().repeat_interleave(HEADS // KV_HEADS, dim=0)
        for side in (arena.keys, arena.values)
    )
    scores = query.double().transpose(0, 1) @ keys.transpose(1, 2) * SCALE
    scores.masked_fill_(~visible(end - len(query), end, 0, window), -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks.double()[:, None, None].expand(-1, len(query), 1)], dim=-1)
    return (scores.softmax(-1)[..., :end] @ values).transpose(0, 1)


@pytest.mark.parametrize("with_sinks", [False, True])
@pytest.mark.parametrize("window", [None, 20, 500])
@pytest.mark.parametrize(("position", "length"), [(0, 1), (0, 64), (64, 1), (64, 64), (130, 50), (300, 64)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_a_chunk_attends_to_the_prefix_and_causally_to_itself(
    with_sinks: bool, position: int, length: int, window: int | None, dtype: torch.dtype, tolerance: float
) -> None:
    end = position + length
    arena = arena_of(end, dtype)
    query = torch.randn(length + 5, HEADS, DIM, generator=torch.Generator().manual_seed(1)).to(dtype)
    chunk = Chunk(3, 3 + length, BASE, position)
    sinks = torch.randn(HEADS, generator=torch.Generator().manual_seed(2)) * 4 if with_sinks else None
    out = attend_chunk(chunk, query, arena, SCALE, window, sinks)
    expected = reference(query[3 : 3 + length], arena, end, window, sinks)
    assert (out.double() - expected).abs().max() < tolerance


def test_sinks_in_parts_of_the_rows_equal_them_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arena, query, sinks = arena_of(90, torch.float32), torch.randn(50, HEADS, DIM), torch.randn(HEADS)
    whole = attend_chunk(Chunk(0, 50, BASE, 40), query, arena, SCALE, 20, sinks)
    monkeypatch.setattr(attention, "_SCORES", 7 * HEADS * 69)
    parts = attend_chunk(Chunk(0, 50, BASE, 40), query, arena, SCALE, 20, sinks)
    torch.testing.assert_close(parts, whole, atol=1e-6, rtol=1e-6)


def test_a_later_chunk_takes_no_mask_and_repeats_no_key() -> None:
    """No operation takes as much memory as a mask in float32, or as keys for every query head."""
    position, length = 2000, 64
    arena = arena_of(position + length, torch.float32)
    query = torch.randn(length, HEADS, DIM)
    with torch.autograd.profiler.profile(use_cpu=True, profile_memory=True) as profile:
        attend_chunk(Chunk(0, length, BASE, position), query, arena, SCALE, None)
    taken = max(event.cpu_memory_usage for event in profile.function_events)
    assert taken < 4 * position * min(length, HEADS * DIM)
