"""What becomes of requests that are refused, cancelled, late or broken, and of their neighbours."""

import asyncio
import pickle
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.features.vllm.installed.conftest import complete, complete_all, nothing_left
from tests.features.vllm.installed.every_kind import KEY, Maker
from tests.harness.waiting import until
from ttmark.gen_service.engine.errors import ContextTooLong, Draining, Overloaded
from ttmark.gen_service.engine.loop.engine_metrics import EngineMetrics

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")


async def drop_after(engine: Any, request: Any, pieces: int) -> None:
    """A caller that lets go of its iterator after some pieces, without closing it."""
    stream = engine.generate(request)
    for _ in range(pieces):
        await anext(stream)
    del stream
    await until(lambda: not engine._host.jobs)


async def leave_after(engine: Any, request: Any, pieces: int) -> None:
    """A client that is gone after some pieces, or before the first."""
    async with aclosing(engine.generate(request)) as stream:
        while pieces and await anext(stream, None) is not None:
            pieces -= 1


@pytest.mark.parametrize("leave", [leave_after, drop_after])
def test_clients_that_leave_are_not_computed_to_their_end(
    engine: Any, maker: Maker, monkeypatch: pytest.MonkeyPatch, leave: Callable[..., Awaitable[None]]
) -> None:
    rows: Counter[str] = Counter()
    monkeypatch.setattr(engine._host, "on_report", lambda report: rows.update(report.rows))

    def long(number: int) -> Any:
        asked = maker.request(4 * number + 2, prompt=8)
        sampling = replace(asked.sampling, max_tokens=240, ignore_eos=True, stop=(), stop_token_ids=())
        return replace(asked, sampling=sampling, grammar=None)

    async def together() -> None:
        await asyncio.gather(*(leave(engine, long(number), 2) for number in range(4)))

    asyncio.run(together())
    assert nothing_left(engine)
    # To their end it would be 956.
    assert 0 < rows["commit"] < 480


def test_what_vllm_gets_of_a_request_holds_no_key(
    engine: Any, maker: Maker, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[bytes] = []
    generate = engine._host._llm.generate

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append(pickle.dumps((arguments, options)) + repr((arguments, options)).encode())
        return generate(*arguments, **options)

    monkeypatch.setattr(engine._host._llm, "generate", watched)
    complete_all(engine, [maker.request(2)])
    assert seen
    assert not any(KEY in each or KEY.hex().encode() in each or repr(KEY).encode() in each for each in seen)
    assert KEY.hex() not in "".join(capfd.readouterr())


def test_refusals_come_at_once(engine: Any, maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = maker.request(2)

    async def ask(request: Any) -> None:
        engine.generate(request)

    with pytest.raises(ContextTooLong, match="the context holds 256 tokens"):
        asyncio.run(ask(maker.request(2, tokens=255)))
    monkeypatch.setattr(engine._host, "_max_requests", 0)
    with pytest.raises(Overloaded):
        asyncio.run(ask(asked))
    with pytest.raises(Overloaded):
        engine.check_queue("a")
    monkeypatch.undo()
    monkeypatch.setattr(engine._host, "accepting", False)
    assert not engine.ready
    with pytest.raises(Draining):
        asyncio.run(ask(asked))


def test_requests_that_come_while_others_are_taken_on_are_answered(engine: Any, maker: Maker) -> None:
    """The list of those in hand is read and written by threads that take turns in the middle of it."""
    asked = [maker.request(4 * number, tokens=1) for number in range(300)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        said = complete_all(engine, asked)
    finally:
        sys.setswitchinterval(before)
    assert all(each.finish_reason for each in said)


def test_a_request_without_a_seed_differs_from_the_next(engine: Any, maker: Maker) -> None:
    asked = maker.request(2)
    unseeded = replace(
        asked, sampling=replace(asked.sampling, seed=None, temperature=1.0, top_k=0, top_p=1.0)
    )
    one, other = complete_all(engine, [unseeded, unseeded])
    assert one.tokens != other.tokens


def test_metrics_have_the_names_of_the_embedded_engine_and_a_drain_finishes_what_was_taken_on(
    llama: Path, started: Callable[..., Any], maker: Maker
) -> None:
    running = started(llama)
    registry = CollectorRegistry()
    running.record_in(EngineMetrics(registry))
    asked = [maker.request(number) for number in range(2, 34, 4)]  # pairs

    async def drain() -> list[Any]:
        jobs = [asyncio.create_task(complete(running, each)) for each in asked]
        await asyncio.sleep(0)
        await asyncio.to_thread(running.stop, 120.0)
        return await asyncio.gather(*jobs)

    said = asyncio.run(drain())
    assert all(each.finish_reason for each in said)
    assert running.alive
    assert not running.ready

    def value(name: str, **labels: str) -> float:
        return registry.get_sample_value(name, {"model": "tiny-llama"} | labels) or 0.0

    assert value("ttmark_engine_queue_seconds_count") == 8
    assert value("ttmark_engine_rows_total", kind="prefill") == sum(len(each.prompt_ids) for each in asked)
    assert value("ttmark_engine_rows_total", kind="probe") > 0
    # Of most pairs the first row was computed by the probe; each completion is in one more step at its end.
    made = sum(len(each.tokens) for each in said)
    assert 0.4 * made < value("ttmark_engine_rows_total", kind="commit") < 0.8 * made
    assert value("ttmark_engine_step_seconds_total", part="forward") > 0
    assert value("ttmark_engine_requests", state="running") == 0
    assert value("ttmark_engine_kv_cache_capacity_tokens") == running.kv_tokens
