"""Passes without the promise of equal bits: the same tokens up to rounding, in fewer rows."""

from pathlib import Path

import pytest

from tests.unit.engine.asking import StartEngine, ask, marking, together, tokens
from ttmark.gen_service.engine import Engine, EngineSettings
from ttmark.gen_service.engine.attention import KvCache
from ttmark.gen_service.engine.loading import load_model
from ttmark.gen_service.engine.runner import Runner


async def completed(engine: Engine, block_size: int, count: int) -> list[list[int]]:
    """Tokens of completions that are made together, of prompts of several lengths."""
    words = "The quick brown fox jumps over the lazy dog"
    asked = [
        ask(engine, words[: 20 + seed], marking(block_size), max_tokens=36, top_k=12, seed=seed)
        for seed in range(count)
    ]
    return [tokens(deltas) for deltas in await together(engine, asked)]


@pytest.mark.parametrize("block_size", [1, 2, 3])
async def test_fast_passes_give_the_tokens_of_reproducible_ones(
    engine: Engine, start_engine: StartEngine, block_size: int
) -> None:
    """In fp32 two ways of adding up differ by 1e-6: a draw between two tokens is not hit in 36 x 6 draws."""
    fast = start_engine(reproducible=False)
    expected = await completed(engine, block_size, 6)
    assert await completed(fast, block_size, 6) == expected


@pytest.mark.parametrize("block_size", [2, 3])
async def test_a_commit_takes_one_row(engine: Engine, start_engine: StartEngine, block_size: int) -> None:
    fast = start_engine(reproducible=False)
    rows = {}
    for each in (engine, fast):
        before = each.stats.rows
        await completed(each, block_size, 1)
        rows[each] = each.stats.rows - before
    blocks = 36 // block_size
    saved = rows[engine] - rows[fast]
    # The blocks of the warm-up are plain, and the last block is not committed.
    assert (blocks - 4) * (block_size - 1) <= saved <= blocks * (block_size - 1)


async def test_preempted_sequences_come_to_the_same_end(engine: Engine, start_engine: StartEngine) -> None:
    tight = start_engine(reproducible=False, kv_tokens=90)
    tight._stepper._scheduler._growth_tokens = 4
    expected = await completed(engine, 2, 6)
    assert await completed(tight, 2, 6) == expected
    assert tight.stats.preemptions > 0


def test_other_devices_than_the_cpu_compute_as_before(tiny_model: Path) -> None:
    settings = EngineSettings(device="cpu", reproducible=False)
    model = load_model(str(tiny_model), settings).model
    assert not Runner(model, KvCache(8), reproducible=False).reproducible
    assert Runner(model.to("meta"), KvCache(8), reproducible=False).reproducible
