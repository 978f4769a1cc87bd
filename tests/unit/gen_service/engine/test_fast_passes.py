"""Passes without the promise of equal bits take fewer rows; `test_architectures.py` has their tokens."""

from pathlib import Path

import pytest

from tests.unit.gen_service.engine.asking import StartEngine, ask, collect, marking
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.settings import EngineSettings


@pytest.mark.parametrize("block_size", [2, 3])
async def test_a_commit_takes_one_row(engine: Engine, start_engine: StartEngine, block_size: int) -> None:
    fast = start_engine(reproducible=False)
    rows = {}
    for each in (engine, fast):
        before = each.stats.rows
        await collect(each, ask(each, mark=marking(block_size), max_tokens=36, top_k=12))
        rows[each] = each.stats.rows - before
    blocks = 36 // block_size
    saved = rows[engine] - rows[fast]
    # The blocks of the warm-up are plain, and the last block is not committed.
    assert (blocks - 4) * (block_size - 1) <= saved <= blocks * (block_size - 1)


def test_other_devices_than_the_cpu_compute_as_before(tiny_model: Path) -> None:
    settings = EngineSettings(device="cpu", reproducible=False)
    model = load_model(str(tiny_model), settings).model
    assert not Runner(model, KvCache(8), reproducible=False).reproducible
    assert Runner(model.to("meta"), KvCache(8), reproducible=False).reproducible
