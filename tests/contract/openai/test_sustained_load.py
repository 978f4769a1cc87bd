"""64 streams at a time on the demo model, for a minute: no error, flat memory, quick scrapes."""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import psutil
import pytest

from gen_service.demo_model import DEMO_MODEL_PATH
from gen_service.engine import Engine, EngineSettings

STREAMS = 64
SECONDS = 60
WARM_UP_SECONDS = 20


@pytest.fixture
def demo(build: Callable[..., Any], serve: Callable[[Any], Any]) -> Iterator[Any]:
    engine = Engine.load(
        str(DEMO_MODEL_PATH), EngineSettings(model_id="tiny", device="cpu", max_sequences=STREAMS)
    )
    engine.start()
    yield serve(build(engine))
    engine.stop(0)


@pytest.mark.slow
async def test_a_minute_of_64_streams_has_no_error_and_flat_memory(demo: Any) -> None:
    started = time.monotonic()
    tokens = 0
    process = psutil.Process()
    memory: list[int] = []
    scrapes: list[float] = []

    async def stream_on(client: Any, number: int) -> None:
        nonlocal tokens
        while time.monotonic() - started < SECONDS:
            stream = await client.completions.create(
                model="tiny",
                prompt=f"The command number {number} reads the file and",
                max_tokens=100,
                stream=True,
                stream_options={"include_usage": True},
                extra_body={"top_k": 50, "top_p": 0.95, "ignore_eos": True},
            )
            chunks = [chunk async for chunk in stream]
            assert chunks[-1].model_extra["watermark"]["status"] in ("watermarked", "partial")
            tokens += chunks[-1].usage.completion_tokens

    async def look_on() -> None:
        async with httpx.AsyncClient(base_url=demo.url) as http:
            while time.monotonic() - started < SECONDS:
                await asyncio.sleep(1)
                asked = time.perf_counter()
                (await http.get("/metrics")).raise_for_status()
                scrapes.append(time.perf_counter() - asked)
                if time.monotonic() - started > WARM_UP_SECONDS:
                    memory.append(process.memory_info().rss)

    async with demo.async_client() as client:
        await asyncio.gather(look_on(), *(stream_on(client, number) for number in range(STREAMS)))
    assert memory[-1] < 1.05 * memory[0]
    print(
        f"{tokens / SECONDS:.0f} tokens/s; resident {memory[0] >> 20} to {memory[-1] >> 20} MiB; "
        f"median scrape {statistics.median(scrapes) * 1000:.0f} ms"
    )
