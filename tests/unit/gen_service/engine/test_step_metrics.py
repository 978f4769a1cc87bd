"""What an engine's steps look like in its metrics."""

import asyncio
import time
from pathlib import Path

from prometheus_client import CollectorRegistry

from tests.unit.gen_service.engine.asking import collect, marking
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.decoding.request import GenerationRequest, ReadingRequest, SamplingParams
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.loop.engine_metrics import ROW_KINDS, STEP_PARTS, EngineMetrics
from ttmark.gen_service.engine.settings import EngineSettings

PROMPT = (5, 6, 7, 8, 9)
TOKENS, COMPLETIONS = 20, 3


async def complete(engine: Engine, seed: int) -> None:
    sampling = SamplingParams(max_tokens=TOKENS, top_k=10, seed=seed, ignore_eos=True)
    await collect(engine, GenerationRequest("id", PROMPT, sampling, marking()))


async def test_rows_candidates_and_times_add_up(tiny_model: Path) -> None:
    registry = CollectorRegistry()
    engine = Engine.load(str(tiny_model), EngineSettings(max_sequences=2, model_id="tiny"))
    engine.record_in(EngineMetrics(registry))
    started = time.perf_counter()
    engine.start()
    try:
        reading = engine.read(ReadingRequest("id", (), tuple(range(1, 101)), FilterParams()))
        await asyncio.gather(reading, *(complete(engine, seed) for seed in range(COMPLETIONS)))
    finally:
        engine.stop(5)
    elapsed = time.perf_counter() - started

    def value(name: str, **labels: str) -> float:
        found = registry.get_sample_value(name, {"model": "tiny", **labels})
        assert found is not None, name
        return found

    rows = {kind: value("ttmark_engine_rows_total", kind=kind) for kind in ROW_KINDS}
    assert rows["prefill"] == COMPLETIONS * len(PROMPT)
    # The last block is not cached; every other token is, once.
    assert COMPLETIONS * (TOKENS - 2) <= rows["commit"] <= COMPLETIONS * TOKENS
    assert rows["reading"] == 99
    assert rows["probe"] == value("ttmark_engine_candidates_sum")
    assert sum(rows.values()) == value("ttmark_engine_step_rows_sum")
    assert value("ttmark_engine_queue_seconds_count") == COMPLETIONS + 1
    seconds = [value("ttmark_engine_step_seconds_total", part=part) for part in STEP_PARTS]
    assert all(part > 0 for part in seconds)
    assert sum(seconds) <= elapsed
    assert value("ttmark_engine_requests", state="running") == 0
    assert value("ttmark_engine_requests", state="waiting") == 0
    assert value("ttmark_engine_kv_cache_capacity_tokens") == engine.kv_tokens


async def test_work_in_hand_shows_while_the_thread_does_nothing(tiny_model: Path) -> None:
    registry = CollectorRegistry()
    engine = Engine.load(str(tiny_model), EngineSettings(max_sequences=1, model_id="tiny"))
    engine.record_in(EngineMetrics(registry))
    hold = asyncio.Event()
    loop = asyncio.get_running_loop()
    forward = engine._runner.forward

    def hanging(*arguments: object) -> object:
        asyncio.run_coroutine_threadsafe(hold.wait(), loop).result()
        return forward(*arguments)  # type: ignore[arg-type]

    engine._runner.forward = hanging  # type: ignore[assignment]
    engine.start()
    waiting = [asyncio.create_task(complete(engine, seed)) for seed in range(2)]
    try:
        await asyncio.sleep(0.2)
        in_hand = [
            registry.get_sample_value("ttmark_engine_requests", {"model": "tiny", "state": state})
            for state in ("running", "waiting")
        ]
        assert sum(in_hand) == 2
        steps = registry.get_sample_value("ttmark_engine_step_rows_count", {"model": "tiny"})
        assert steps <= 1
    finally:
        hold.set()
        await asyncio.gather(*waiting)
        engine.stop(5)
