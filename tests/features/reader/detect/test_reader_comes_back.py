"""Who decides that a reader is down, how it comes back, and whose volume and slowness count for whom."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.features.reader.detect.test_model_reader import Handler, asking, hangs, honest, refuses, serving
from tests.harness.waiting import until
from tests.unit.detect_service.conftest import Service
from tests.unit.detect_service.served import served
from ttmark.detect_service.features.reader import reading_speed, reads_along
from ttmark.detect_service.features.reader.reads_along import PROBE, ReaderMetrics, ReadsAlong
from ttmark.shared.http.app import beside

LONG, SHORT = "a long text " * 400, "a short text"


@asynccontextmanager
async def watched(answer: Callable[..., None], **options: Any) -> AsyncIterator[tuple[ReadsAlong, Any]]:
    """A reader that answers so, tried in the background, and its server."""
    seconds = options.pop("timeout_seconds", 20.0)
    with serving(answer) as server:
        async with asking(server, timeout_seconds=seconds) as client:
            server.registry = CollectorRegistry()
            reader = ReadsAlong(client, ReaderMetrics(server.registry), seconds)
            async with beside(None, [reader.watch])(FastAPI()):
                await until(lambda: bool(server.tries))
                yield reader, server


def outcomes(server: Any, name: str) -> float:
    return server.registry.get_sample_value("ttmark_detect_reader_texts_total", {"outcome": name})


def is_long(body: dict[str, Any]) -> bool:
    return any(len(text) > 1_000 for text in body["texts"])


def long_ones(do: Callable[..., None]) -> Callable[..., None]:
    """A reader that does so with long texts, and reads others."""
    return lambda handler, body: (do if is_long(body) else honest)(handler, body)


@pytest.mark.parametrize("trouble", [hangs, refuses(500)])
async def test_what_befalls_one_tenant_s_texts_turns_the_reader_off_for_nobody(trouble: Any) -> None:
    async with watched(long_ones(trouble), timeout_seconds=1.0) as (reader, server):
        tries = len(server.tries)
        for _ in range(4):
            assert await reader.read([LONG], "attacker") == {}
        await until(lambda: len(server.tries) > tries)  # a failure begins a try, which is answered
        assert list(await reader.read([SHORT], "neighbour")) == [SHORT]
        assert reader.state == "up"


async def test_a_reader_that_went_away_is_asked_again_within_seconds_of_its_return(service: Service) -> None:
    text = service.marked("a-one", 60)
    async with (
        watched(refuses(500)) as (reader, server),
        served(service.backend, service.authenticate, reader=reader) as http,
    ):

        async def asked() -> Any:
            body = {"inputs": [{"text": text}], "keys": ["a-one"], "reader": "always"}
            answer = await http.post("/v1/detect", json=body, headers=service.headers("full"))
            return answer.json()["results"][0]

        await until(lambda: reader.state == "down")
        away, count = await asked(), len(server.asked)
        never = await http.post(
            "/v1/detect",
            json={"inputs": [{"text": text}], "keys": ["a-one"], "reader": "never"},
            headers=service.headers("full"),
        )
        # Known to be down before any score is: the first step has the whole rate, and nobody waits.
        assert (away["reader"], count) == ("down", 0)
        assert away["log10_p"] == never.json()["results"][0]["log10_p"]
        server.answer = honest
        took = await until(lambda: reader.state == "up")
        assert took < reads_along.LONGEST_REST_SECONDS + 1
        assert (await asked())["reader"] == "read"


async def test_rests_grow_up_to_a_few_seconds_and_callers_do_not_shorten_them(monkeypatch: Any) -> None:
    rests: list[float] = []
    sleep, loop = asyncio.sleep, asyncio.get_running_loop()

    async def noted(seconds: float) -> None:
        if asyncio.get_running_loop() is not loop:  # another test's server
            await sleep(seconds)
            return
        rests.append(seconds)
        await sleep(0)

    async with watched(refuses(500)) as (reader, _server):
        assert reader._probe is not None
        await until(lambda: reader.state == "down")
        monkeypatch.setattr(reads_along.asyncio, "sleep", noted)
        while len(rests) < 5:
            reader._probe.doubt()
            await sleep(0.01)
        monkeypatch.undo()
    assert [rest for rest in rests if rest != 0.01][:5] == [1.0, 2.0, 2.0, 2.0, 2.0]


async def test_a_late_answer_to_an_earlier_try_brings_nothing_back(monkeypatch: Any) -> None:
    late, first = threading.Event(), threading.Event()

    def once_late(handler: Handler, body: dict[str, Any]) -> None:
        if first.is_set():
            handler.say("", 500)
            return
        first.set()
        late.wait(5)
        honest(handler, body)

    monkeypatch.setattr(reads_along, "TRY_SECONDS", 0.1)
    states = set()
    async with watched(once_late) as (reader, server):
        await until(lambda: reader.state == "down")
        tries = len(server.tries)
        late.set()
        await until(lambda: states.add(reader.state) or len(server.tries) > tries + 1)
    assert states == {"down"}


async def test_nobody_waits_for_a_reader_that_is_found_to_be_down(monkeypatch: Any) -> None:
    monkeypatch.setattr(reads_along, "TRY_SECONDS", 0.2)
    async with watched(honest) as (reader, server):
        server.answer = hangs
        waiting = [asyncio.create_task(reader.read([SHORT, LONG], f"tenant {n}")) for n in range(6)]
        await until(lambda: len(server.asked) > 2)
        reader._probe.doubt()  # type: ignore[union-attr]
        assert await asyncio.wait_for(asyncio.gather(*waiting), 5) == [{}] * 6
        assert reader.state == "down"


async def test_a_reader_that_refuses_the_token_says_so_and_comes_back_with_the_token() -> None:
    with capture_logs() as logs:
        async with watched(refuses(403)) as (reader, server):
            await until(lambda: reader.state == "down")
            assert server.registry.get_sample_value("ttmark_detect_reader_up") == -1.0
            server.answer = honest
            await until(lambda: reader.state == "up")
            assert server.registry.get_sample_value("ttmark_detect_reader_up") == 1.0
    said = [(line["log_level"], line["state"]) for line in logs if line["event"] == "reader"]
    assert said == [("warning", "token"), ("info", "up")]
    assert "scope read" in next(line["reason"] for line in logs if line["event"] == "reader")


async def test_a_busy_reader_is_up_and_rests_from_the_tenant_it_said_so_to() -> None:
    busy = long_ones(lambda handler, _: handler.say("", 429, Retry_After="1"))
    async with watched(busy) as (reader, server):
        for _ in range(4):
            assert await reader.read([LONG], "attacker") == {}
        assert len(server.asked) == 1  # the others are not sent: that was a moment ago
        assert (reader.state, outcomes(server, "busy"), outcomes(server, "failed")) == ("up", 4.0, 0.0)
        assert list(await reader.read([SHORT], "neighbour")) == [SHORT]
        server.answer = honest
        await until(lambda: reader._of("attacker").rests_until < time.monotonic())
        assert list(await reader.read([LONG], "attacker")) == [LONG]


async def test_what_was_too_slow_a_moment_ago_is_not_sent_and_later_it_is(monkeypatch: Any) -> None:
    async with watched(long_ones(hangs), timeout_seconds=1.0) as (reader, server):
        assert await reader.read([LONG], "a") == {}
        assert list(await reader.read([SHORT, LONG], "a")) == [SHORT]  # what fits is read
        assert outcomes(server, "too_slow") == 1.0
        assert [is_long(body) for *_, body in server.asked] == [True, False]
        assert await reader.read([LONG], "b") == {}  # of others nothing is known
        assert len(server.asked) == 3
        server.answer = honest
        monkeypatch.setattr(reading_speed, "TOO_SLOW_SECONDS", 0.0)
        assert list(await reader.read([LONG], "a")) == [LONG]


async def test_tenants_take_turns_and_one_s_volume_is_not_another_s_wait() -> None:
    """Eight questions of four long texts each, at a reader that reads one text at a time."""
    reading, most, ended = threading.Lock(), 0, []

    def one_at_a_time(handler: Handler, body: dict[str, Any]) -> None:
        nonlocal most
        with counting:
            at_once.append(1)
            most = max(most, len(at_once))
        with reading:
            time.sleep(0.05 * len(body["texts"]))
        with counting:
            at_once.pop()
        ended.append(body["texts"])
        honest(handler, body)

    counting, at_once = threading.Lock(), list[int]()
    async with watched(one_at_a_time) as (reader, server):
        await until(lambda: reader._probe.seconds is not None)  # type: ignore[union-attr]
        texts = [[f"{LONG} {number} {part}" for part in range(4)] for number in range(8)]
        attack = [asyncio.create_task(reader.read(own, "attacker")) for own in texts]
        await until(lambda: len(server.asked) == 2)
        most = 0
        assert list(await reader.read([SHORT], "neighbour")) == [SHORT]
        before = sum(PROBE not in texts for texts in ended[: ended.index([SHORT])])
        assert before <= 3
        assert most <= 4  # two of the attacker, the neighbour's, and a try
        assert [len(found) for found in await asyncio.gather(*attack)] == [4] * 8


async def test_one_tenant_s_slowness_is_not_what_others_are_told_to_expect() -> None:
    async with watched(honest) as (reader, _server):
        await until(lambda: reader._probe.seconds is not None)  # type: ignore[union-attr]
        first = reader.expected_seconds("b", [100])
        assert 0.0 < first < 1.0  # of a reader that answers tries, before the first text
        for _ in range(20):
            await reader.read([SHORT], "b")
        for seconds in (4.0, 4.0):
            reader._of("a").add(seconds, 300)
        reader._of("b").add(4.0, 300)  # one in twenty
        assert reader.expected_seconds("a", [100]) == pytest.approx(2 * 4.0)
        assert reader.expected_seconds("b", [100]) < 1.0
        assert reader.expected_seconds("b", [10_000_000]) == 20.0  # the time-out
        assert reader.expected_seconds("b", []) == 0.0
