"""64 streams at a time on the demo model, for a minute: no error, flat memory, quick scrapes."""

import asyncio
import statistics
import time
from typing import Any

import httpx
import openai
import psutil
import pytest

STREAMS = 64
SECONDS = 60
WARM_UP_SECONDS = 15
MOST_GROWTH = 1.05


@pytest.mark.slow
async def test_a_minute_of_64_streams_has_no_error_and_flat_memory(start, demo_setup, record_result):
    service = start(
        demo_setup, max_concurrency=STREAMS, requests_per_minute=0, tokens_per_minute=0, log_level="WARNING"
    )
    service.wait_until_ready()
    process = psutil.Process(service.pid)
    started = time.monotonic()
    tokens = streams = 0
    memory: list[int] = []
    scrapes: list[float] = []

    async def stream_on(client: openai.AsyncOpenAI, number: int) -> None:
        nonlocal tokens, streams
        while time.monotonic() - started < SECONDS:
            stream = await client.completions.create(
                model="demo",
                prompt=f"The command number {number} reads the file and",
                max_tokens=100,
                stream=True,
                stream_options={"include_usage": True},
                extra_body={"top_k": 50, "top_p": 0.95, "ignore_eos": True},
            )
            chunks: list[Any] = [chunk async for chunk in stream]
            assert chunks[-1].model_extra["watermark"]["status"] in ("watermarked", "partial")
            assert chunks[-1].usage.completion_tokens == 100
            tokens += 100
            streams += 1

    async def look_on() -> None:
        async with httpx.AsyncClient(base_url=service.url) as http:
            while time.monotonic() - started < SECONDS:
                await asyncio.sleep(1)
                asked = time.perf_counter()
                (await http.get("/metrics")).raise_for_status()
                scrapes.append(time.perf_counter() - asked)
                if time.monotonic() - started > WARM_UP_SECONDS:
                    memory.append(process.memory_info().rss)

    async with openai.AsyncOpenAI(
        base_url=f"{service.url}/v1", api_key=demo_setup.token, max_retries=0
    ) as client:
        await asyncio.gather(look_on(), *(stream_on(client, number) for number in range(STREAMS)))
    took = time.monotonic() - started
    record_result(
        f"{STREAMS} concurrent streams for {SECONDS} s, demo model, official client",
        "no error, memory flat",
        f"{streams:,} streams, 0 errors, {tokens / took:.0f} tokens/s; resident {memory[0] >> 20} to "
        f"{memory[-1] >> 20} MiB; median scrape {statistics.median(scrapes) * 1000:.0f} ms",
    )
    assert memory[-1] < MOST_GROWTH * memory[0]
