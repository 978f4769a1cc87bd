"""15,000 requests of every kind through one engine: over the last 10,000 its memory stays where it was."""

import asyncio
import gc
import random

import psutil
import pytest

from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.watermark.schemes.watermark import Watermark

REQUESTS = 15_000
AT_ONCE = 32
WARM_UP = 5_000
MOST_GROWTH = 1.02


def request_of(engine: Engine, number: int, draw: random.Random) -> GenerationRequest:
    """Plain, single tokens, pairs or triples; short and long prompts of eight tenants, with common starts."""
    block_size = number % 4
    length = draw.choice([4, 12, 40, 90])
    start = [7] * 40 if number % 3 == 0 else []
    prompt = start + [draw.randrange(1, engine.vocab_size) for _ in range(length)]
    mark = (
        Marking("key", 1, "profile", Watermark("synthid", block_size), bytes(range(16)))
        if block_size
        else None
    )
    sampling = SamplingParams(
        max_tokens=6, temperature=1.0, top_k=20, top_p=0.9, seed=number if number % 5 == 0 else None
    )
    return GenerationRequest(str(number), tuple(prompt), sampling, mark, tenant=f"tenant {number % 8}")


pytestmark = pytest.mark.usefixtures("few_kernels")


@pytest.fixture
def few_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a service has them; oneDNN reads it at its first product, so the test wants a process of its own."""
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "smollm2"])
async def test_memory_is_flat_over_ten_thousand_requests(name, request, record_result):
    folder = DEMO_MODEL_PATH if name == "demo" else request.getfixturevalue("smollm2_folder")
    settings = EngineSettings(dtype="auto", max_sequences=AT_ONCE, kv_tokens=8192, reproducible=False)
    engine = Engine.load(str(folder), settings)
    engine.start()
    draw, process = random.Random(1), psutil.Process()
    numbers = iter(range(REQUESTS))
    memory: list[int] = []

    async def client() -> None:
        for number in numbers:
            async for _ in engine.generate(request_of(engine, number, draw)):
                pass
            if number % 500 == 0:
                gc.collect()
                memory.append(process.memory_info().rss)

    try:
        await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    finally:
        engine.stop(0)
    warm = memory[WARM_UP // 500]
    record_result(
        f"{REQUESTS:,} requests, {AT_ONCE} at a time, {name}",
        f"memory grows by less than {MOST_GROWTH - 1:.0%} after the first {WARM_UP:,}",
        f"resident {warm >> 20} to {memory[-1] >> 20} MiB",
    )
    assert memory[-1] < MOST_GROWTH * warm
