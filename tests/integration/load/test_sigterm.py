"""SIGTERM under load: what the service has taken on it answers, and ends in time."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
import pytest

CLIENTS = 8
DRAIN_SECONDS = 30.0
RUNNING = 'ttmark_engine_requests{model="tiny",state="running"} 1.0'


@dataclass
class Tally:
    """What became of the requests of services that were told to stop."""

    whole: int = 0
    refused: int = 0
    slowest: float = 0.0
    lost: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)


async def keep_asking(url: str, token: str, number: int, tally: Tally) -> None:
    """Sends one request after another, each second one streamed, until the service takes no more."""
    chance = random.Random(number)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
        for count in range(1_000_000):
            request_id = f"{number}-{count}-{chance.getrandbits(64):x}"
            body = {
                "model": "tiny",
                "prompt": "The quick brown fox",
                "max_tokens": chance.choice([8, 40, 120]),
                "top_k": 4,
                "ignore_eos": True,
                "stream": count % 2 == 0,
                "return_token_ids": True,
            }
            try:
                response = await http.post("/v1/completions", json=body, headers={"X-Request-ID": request_id})
            except httpx.ConnectError:
                return
            except httpx.TransportError:
                tally.unanswered.append(request_id)
                return
            if response.status_code == 503:
                assert response.json()["error"]["type"] == "server_error"
                assert int(response.headers["retry-after"]) >= 1
                tally.refused += 1
                return
            if tokens(response) == body["max_tokens"]:
                tally.whole += 1
            else:
                tally.lost.append(request_id)


def tokens(response: httpx.Response) -> int:
    """Tokens of a whole answer; -1 for one that is not whole."""
    if response.status_code != 200:
        return -1
    if not response.headers["content-type"].startswith("text/event-stream"):
        return len(response.json()["choices"][0]["token_ids"])
    events = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
    if events[-1] != "[DONE]":
        return -1
    return sum(len(choice["token_ids"]) for event in events[:-1] for choice in orjson.loads(event)["choices"])


async def under_load(service: Any, token: str, number: int, stop: Callable[[], Any], tally: Tally) -> None:
    """Stops a service that is ready, under load, and checks what becomes of its requests."""
    chance = random.Random(number)
    clients = [
        asyncio.create_task(keep_asking(service.url, token, number * CLIENTS + client, tally))
        for client in range(CLIENTS)
    ]
    due = tally.whole + chance.randint(1, 20)
    while tally.whole < due and not all(client.done() for client in clients):  # noqa: ASYNC110
        await asyncio.sleep(chance.random() / 10)
    asked = time.monotonic()
    stop()
    code = await asyncio.to_thread(service.wait)
    tally.slowest = max(tally.slowest, time.monotonic() - asked)
    await asyncio.gather(*clients)
    assert code == 0
    log = service.log.read_text()  # names those of them that it had begun to work on
    assert [*tally.lost, *(request_id for request_id in tally.unanswered if request_id in log)] == []
    assert tally.whole >= due
    assert tally.slowest <= DRAIN_SECONDS


@pytest.mark.parametrize("rounds", [1, pytest.param(100, marks=pytest.mark.slow)])
async def test_a_service_that_is_told_to_stop_answers_what_it_has_taken_on(
    start: Any, tiny_setup: Any, record_result: Any, rounds: int
) -> None:
    total = Tally()
    for number in range(rounds):
        service = start(tiny_setup, dtype="float32")
        await asyncio.to_thread(service.wait_until_ready)
        await under_load(service, tiny_setup.token, number, service.terminate, total)
    record_result(
        f"SIGTERM under load, {rounds} times",
        f"0 accepted requests lost, drained <= {DRAIN_SECONDS:.0f} s",
        f"0 lost: {total.whole:,} answered whole, {total.refused} refused with 503 and Retry-After, "
        f"{len(total.unanswered)} connections closed before the service read a request; slowest end "
        f"{total.slowest:.1f} s",
    )


@pytest.mark.parametrize("stream", [pytest.param(False, marks=pytest.mark.long), True])
async def test_what_outlasts_the_drain_is_told_to_come_again(start, tiny_setup, stream):
    service = start(tiny_setup, drain_seconds=0.1, max_concurrency=1)
    service.wait_until_ready()
    body = {
        "model": "tiny", "prompt": "The", "max_tokens": 500, "ignore_eos": True, "stream": stream, "n": 16,
    }  # fmt: skip
    headers = {"Authorization": f"Bearer {tiny_setup.token}"}
    async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=60) as http:
        asked = asyncio.create_task(http.post("/v1/completions", json=body))
        while RUNNING not in (await http.get("/metrics")).text:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)
        service.terminate()
        response = await asked
    if stream:
        error = orjson.loads(response.text.strip().splitlines()[-1].removeprefix("data: "))["error"]
    else:
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        error = response.json()["error"]
    assert (error["type"], error["code"]) == ("server_error", "shutting_down")
    assert service.wait() == 0
