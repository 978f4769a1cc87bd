"""An engine that is full, told to stop, or hit by an error."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import structlog
import torch

from tests.harness.waiting import until
from tests.unit.gen_service.engine.asking import Faulty, StartEngine, ask, collect, marking, tokens
from ttmark.gen_service.decoding import filters
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.decoding.filters import bounded_rows
from ttmark.gen_service.decoding.request import GenerationRequest, SequenceFailed
from ttmark.gen_service.engine.errors import Draining, EngineDied, OutOfTime, Overloaded
from ttmark.gen_service.engine.loop.engine import Engine


async def test_a_full_queue_refuses_at_once_with_a_time_to_wait(start_engine: StartEngine) -> None:
    engine = start_engine(max_sequences=2, max_waiting=1)
    streams = [engine.generate(ask(engine, max_tokens=100)) for _ in range(3)]
    with pytest.raises(Overloaded) as refused:
        engine.generate(ask(engine))
    assert 1.0 <= refused.value.retry_after <= 60.0
    for stream in streams:
        assert len(tokens([delta async for delta in stream])) == 100
    assert len(tokens(await collect(engine, ask(engine)))) == 24


async def test_draining_finishes_what_runs_and_refuses_what_comes(start_engine: StartEngine) -> None:
    engine = start_engine()
    running = [asyncio.create_task(collect(engine, ask(engine, max_tokens=60))) for _ in range(4)]
    await asyncio.sleep(0.02)
    stopper = threading.Thread(target=engine.stop, args=(30.0,))
    stopper.start()
    await until(lambda: not engine.ready)
    with pytest.raises(Draining):
        engine.generate(ask(engine))
    assert all(len(tokens(deltas)) == 60 for deltas in await asyncio.gather(*running))
    await asyncio.to_thread(stopper.join)


async def test_what_is_not_finished_when_the_drain_time_is_over_is_told_so(start_engine: StartEngine) -> None:
    engine = start_engine(max_sequences=1)
    running, waiting = [asyncio.create_task(collect(engine, ask(engine, max_tokens=230))) for _ in range(2)]
    await asyncio.sleep(0.01)
    await asyncio.to_thread(engine.stop, 0.0)
    for request in (running, waiting):
        with pytest.raises(Draining, match="stopping"):
            await request
    assert (engine.stats.cached_tokens, engine.waiting) == (0, 0)


async def test_a_second_call_cuts_a_drain_short(start_engine: StartEngine) -> None:
    engine = start_engine()
    slow = engine._runner.forward
    engine._runner.forward = lambda pieces: (time.sleep(0.05), slow(pieces))[1]  # type: ignore[method-assign]
    running = asyncio.create_task(collect(engine, ask(engine, max_tokens=230)))
    draining = asyncio.create_task(asyncio.to_thread(engine.stop, 300.0))
    await until(lambda: not engine.ready)
    await asyncio.to_thread(engine.stop, 0.0)
    await asyncio.wait_for(draining, 5)
    with pytest.raises(Draining):
        await running


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_when_the_engines_thread_dies_every_request_is_told_and_none_is_taken(
    start_engine: StartEngine,
) -> None:
    engine = start_engine(max_sequences=1)

    def die(pieces: Any) -> Any:
        raise SystemExit  # no Exception, so the engine does not survive it

    running, waiting = [asyncio.create_task(collect(engine, ask(engine, max_tokens=230))) for _ in range(2)]
    await until(lambda: engine.stats.running == 1)
    engine._runner.forward = die  # type: ignore[method-assign]
    for request in (running, waiting):
        with pytest.raises(EngineDied):
            await asyncio.wait_for(request, 5)
    await until(lambda: not engine.ready)
    assert not engine.alive
    with pytest.raises(Draining):
        engine.generate(ask(engine))


async def test_a_request_over_its_deadline_fails(start_engine: StartEngine) -> None:
    engine = start_engine(request_seconds=0.05)
    with pytest.raises(OutOfTime):
        await collect(engine, ask(engine, max_tokens=230))
    await until(lambda: engine.stats.running == 0 and engine.stats.cached_tokens == 0)


def test_an_engine_that_was_stopped_is_not_called_dead(start_engine: StartEngine) -> None:
    engine = start_engine()
    assert engine.alive
    engine.stop(0)
    assert engine.alive


async def test_before_start_nothing_is_accepted(start_engine: StartEngine, tiny_model: Any) -> None:
    engine = Engine.load(str(tiny_model), start_engine()._settings)
    assert not engine.ready
    with pytest.raises(Draining):
        engine.generate(ask(engine))


@pytest.fixture
def logs() -> Iterator[list[structlog.typing.EventDict]]:
    """Log events of the test, however other tests of the session have set the logs up."""
    before = structlog.get_config()
    structlog.reset_defaults()
    with structlog.testing.capture_logs() as events:
        yield events
    structlog.configure(**before)


async def broken_alone(engine: Engine, requests: list[GenerationRequest], broken: GenerationRequest) -> None:
    """Made at once: one fails, the others have the tokens that each has alone."""
    expected = [tokens(await collect(engine, request)) for request in requests]
    asked = [collect(engine, request) for request in [*requests, broken]]
    *others, failed = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(failed, SequenceFailed)
    assert [tokens(deltas) for deltas in others if isinstance(deltas, list)] == expected


@pytest.mark.parametrize("silent", [False, True])
async def test_a_fault_of_one_sequence_ends_it_alone(
    engine: Engine, logs: list[structlog.typing.EventDict], silent: bool
) -> None:
    requests = [ask(engine, mark=marking(r), seed=r, max_tokens=40) for r in (1, 2, 2, 3)]
    broken = ask(engine, mark=marking(watermark=Faulty(0, silent=silent)), max_tokens=40)
    await broken_alone(engine, requests, broken)
    (log,) = (log for log in logs if log["event"] == "completion_failed")
    assert log["request_id"] == broken.request_id
    origin = "SequenceFailed at tandem_block.py:" if silent else "RuntimeError at asking.py:"
    assert log["origin"].startswith(origin)


async def test_filters_that_fail_for_one_sequence_fail_it_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursed = 0.123

    def filter_or_fail(logits: torch.Tensor, params: Sequence[FilterParams], counts: Sequence[int]) -> Any:
        if any(each.top_p == cursed for each in params):
            raise IndexError("cursed")
        return bounded_rows(logits, params, counts)

    requests = [ask(engine, mark=marking(r), seed=r) for r in (1, 2, 3)]
    monkeypatch.setattr(filters, "bounded_rows", filter_or_fail)
    await broken_alone(engine, requests, ask(engine, mark=marking(), top_p=cursed))
