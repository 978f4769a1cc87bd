"""Many clients at once, and clients that leave in every phase of a request."""

import asyncio
import random
import time
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from tests.harness.waiting import until
from ttmark.gen_service.engine.loop.engine import Engine

pytestmark = pytest.mark.long

REQUEST = {"model": "tiny", "prompt": "Once", "top_k": 4, "ignore_eos": True}


async def test_64_streams_at_once_have_the_texts_that_come_alone(service: Any) -> None:
    async with service.async_client() as client:

        async def text(seed: int) -> str:
            extra = {"top_k": 4, "ignore_eos": True}
            stream = await client.completions.create(
                model="tiny", prompt="Once", max_tokens=12, seed=seed, extra_body=extra, stream=True
            )
            return "".join([chunk.choices[0].text async for chunk in stream])

        texts = await asyncio.gather(*(text(seed) for seed in range(64)))
    for seed in range(0, 64, 8):
        asked = REQUEST | {"max_tokens": 12, "seed": seed}
        assert texts[seed] == service.answer("completions", **asked)["choices"][0]["text"]


@pytest.mark.parametrize("clients", [60, pytest.param(5_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stream", [False, True])
async def test_clients_that_leave_at_any_moment_leave_nothing_behind(service, stream, clients):
    body = orjson.dumps(REQUEST | {"max_tokens": 60, "stream": stream, "n": 2})
    chance = random.Random(5)
    at_once = asyncio.Semaphore(60)

    async def come_and_go(share: float, seconds: float) -> None:
        async with at_once:
            await _leave(service.url, body, share, seconds)

    await asyncio.gather(*(come_and_go(chance.random(), chance.random() / 2) for _ in range(clients)))
    in_flight = partial(service.registry.get_sample_value, "ttmark_http_requests_in_flight")
    await until(lambda: not service.running and not in_flight())
    assert service.http().post("/v1/completions", json=REQUEST | {"max_tokens": 4}).status_code == 200


def _head(length: int) -> bytes:
    return (
        "POST /v1/completions HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer author\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


async def _leave(url: str, body: bytes, share: float, seconds: float) -> None:
    """Sends a request, or the beginning of one, reads for a while and closes the connection."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    message = _head(len(body)) + body
    writer.write(message if share > 0.3 else message[: int(len(message) * share / 0.3)])
    await writer.drain()
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(seconds):
            while await reader.read(1000):
                pass
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("n", [1, 3])
async def test_a_client_that_leaves_frees_its_places_within_two_steps(real, monkeypatch, stream, n):
    engine = real.generator
    if not isinstance(engine, Engine):
        pytest.skip("of the embedded engine alone: vLLM promises no number of steps")
    forward, leave = engine._runner.forward, engine._stepper._leave
    left_after: list[int] = []

    def slowly(pieces: Any) -> Any:
        time.sleep(0.2)  # so that a step takes longer than the news of the closed connection
        return forward(pieces)

    def note(sequence: Any) -> None:
        leave(sequence)
        left_after.append(engine.stats.passes)

    monkeypatch.setattr(engine._runner, "forward", slowly)
    monkeypatch.setattr(engine._stepper, "_leave", note)
    address = urlsplit(real.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    body = orjson.dumps(REQUEST | {"max_tokens": 200, "stream": stream, "n": n})
    writer.write(_head(len(body)) + body)
    first = engine.stats.passes
    await until(lambda: engine.stats.running >= n and engine.stats.passes >= first + 3)
    if stream:
        assert b" 200 " in await asyncio.wait_for(reader.readline(), 20)
    writer.close()
    closed_after = engine.stats.passes
    await until(lambda: len(left_after) == n)
    assert max(left_after) - closed_after <= 2
