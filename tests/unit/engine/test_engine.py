"""The engine as its callers see it."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import structlog
import torch

from ttmark.gen_service.decoding import decoder
from ttmark.gen_service.decoding.bounded_filters import bounded_rows
from ttmark.gen_service.decoding.filter_params import FilterParams
from ttmark.gen_service.engine import (
    ContextTooLong,
    Delta,
    Draining,
    Engine,
    EngineDied,
    GenerationRequest,
    Marking,
    OutOfTime,
    Overloaded,
    SamplingParams,
    SequenceFailed,
)
from ttmark.shared.watermark import Watermark, detect_direct

KEY = bytes(range(16))
StartEngine = Callable[..., Engine]


def marking(block_size: int = 2, watermark: Watermark | None = None) -> Marking:
    return Marking("key", 1, "profile", watermark or Watermark("synthid", block_size), KEY)


def ask(
    engine: Engine, prompt: str = "The quick brown fox", mark: Marking | None = None, **params: Any
) -> Any:
    values = {"max_tokens": 24, "temperature": 1.0, "top_k": 30, "seed": 1, "ignore_eos": True, **params}
    return GenerationRequest("id", tuple(engine.tokenizer.encode(prompt)), SamplingParams(**values), mark)


async def collect(engine: Engine, request: GenerationRequest) -> list[Delta]:
    return [delta async for delta in engine.generate(request)]


def tokens(deltas: list[Delta]) -> list[int]:
    return [token for delta in deltas for token in delta.token_ids]


def only_ascii(engine: Engine) -> dict[int, float]:
    """A bias that leaves the tokens that are ASCII text by themselves."""
    return {i: -1e4 for i in range(engine.vocab_size) if not engine.tokenizer.decode([i]).strip().isascii()}


def text(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas)


@pytest.mark.parametrize("block_size", [1, 2, 3])
async def test_a_watermarked_completion_is_detected_under_its_key_and_not_under_another(
    engine: Engine, block_size: int
) -> None:
    mark = marking(block_size)
    deltas = await collect(engine, ask(engine, mark=mark, max_tokens=120))
    assert detect_direct(mark.watermark, KEY, tokens(deltas)).log10_p < -10
    assert detect_direct(mark.watermark, KEY[::-1], tokens(deltas)).log10_p > -3


async def test_the_report_counts_blocks_and_says_why_some_carry_no_watermark(engine: Engine) -> None:
    deltas = await collect(engine, ask(engine, mark=marking(2), max_tokens=41))
    report = deltas[-1].report
    assert report is not None
    assert report.blocks == 21
    assert report.reasons["warm_up"] == 2
    assert report.reasons["odd_end"] == 1
    assert report.watermarked_blocks == 21 - sum(report.reasons.values())
    assert all(delta.report is None for delta in deltas[:-1])


async def test_text_without_a_marking_is_counted_in_the_blocks_that_its_request_names(engine: Engine) -> None:
    request = replace(ask(engine, max_tokens=5, temperature=0.0), unmarked_reason="greedy")
    report = (await collect(engine, replace(request, unmarked_block_size=2)))[-1].report
    assert report is not None
    assert (report.blocks, dict(report.reasons)) == (3, {"greedy": 3})


async def test_a_context_that_comes_again_is_not_watermarked_again(engine: Engine) -> None:
    bias = dict.fromkeys((40, 41), 60.0)
    mark = marking(watermark=Watermark("synthid", 2, 1))
    deltas = await collect(engine, ask(engine, mark=mark, max_tokens=60, logit_bias=bias))
    report = deltas[-1].report
    assert report is not None
    assert report.reasons["repeated_context"] >= 25


async def test_temperature_zero_is_greedy_and_says_so(engine: Engine) -> None:
    first, second = [
        await collect(engine, ask(engine, mark=marking(2), temperature=0.0, seed=seed)) for seed in (1, 2)
    ]
    assert tokens(first) == tokens(second)
    assert first[-1].report is not None
    assert first[-1].report.watermarked_blocks == 0
    assert first[-1].report.reasons == {"greedy": 12}


async def test_a_request_without_marking_reports_the_reason_that_it_came_with(engine: Engine) -> None:
    request = replace(ask(engine, max_tokens=5), unmarked_reason="not_wanted")
    report = (await collect(engine, request))[-1].report
    assert report is not None
    assert (report.blocks, report.watermarked_blocks, dict(report.reasons)) == (5, 0, {"not_wanted": 5})


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("max_tokens", [1, 2, 3, 10])
async def test_a_completion_has_exactly_max_tokens_and_ends_with_length(
    engine: Engine, block_size: int, max_tokens: int
) -> None:
    deltas = await collect(engine, ask(engine, mark=marking(block_size), max_tokens=max_tokens))
    assert len(tokens(deltas)) == max_tokens
    assert [delta.finish_reason for delta in deltas] == [None] * (len(deltas) - 1) + ["length"]


@pytest.mark.parametrize("block_size", [1, 2, 3])
async def test_an_end_of_text_token_ends_the_completion_and_has_no_text(
    engine: Engine, block_size: int
) -> None:
    lengths = set()
    for seed in range(8):
        request = ask(engine, mark=marking(block_size), ignore_eos=False, seed=seed, logit_bias={0: 6.0})
        deltas = await collect(engine, request)
        ids = tokens(deltas)
        lengths.add(len(ids) % block_size)
        assert deltas[-1].finish_reason == "stop"
        assert ids.index(0) == len(ids) - 1
        assert text(deltas) == engine.tokenizer.decode(ids[:-1])
    assert lengths == set(range(block_size))


async def test_a_stop_string_cuts_the_text_across_block_boundaries(start_engine: StartEngine) -> None:
    engine = start_engine()
    params = {"mark": marking(2), "max_tokens": 60, "logit_bias": only_ascii(engine)}
    whole = await collect(engine, ask(engine, **params))
    full = text(whole)
    for start, length in [(5, 1), (11, 3), (20, 6)]:
        stop = full[start : start + length]
        deltas = await collect(engine, ask(engine, **params, stop=(stop, "not there")))
        assert text(deltas) == full[: full.index(stop)]
        assert deltas[-1].finish_reason == "stop"
        ids = tokens(deltas)
        assert ids == tokens(whole)[: len(ids)]
        assert stop in engine.tokenizer.decode(ids)
        assert stop not in engine.tokenizer.decode(ids[:-1])


async def test_the_pieces_of_text_add_up_to_the_decoded_tokens(engine: Engine) -> None:
    deltas = await collect(engine, ask(engine, mark=marking(2), max_tokens=40, top_k=0))
    assert text(deltas) == engine.tokenizer.decode(tokens(deltas))


async def test_the_same_seed_gives_the_same_completion_and_another_seed_another(engine: Engine) -> None:
    runs = [
        tokens(await collect(engine, ask(engine, mark=marking(2), seed=s))) for s in (3, 3, 4, None, None)
    ]
    assert runs[0] == runs[1]
    assert len({tuple(run) for run in runs}) == 4


@pytest.mark.parametrize("block_size", [1, 2, 3])
async def test_logprobs_are_those_of_the_model_whatever_the_filters_are(
    engine: Engine, block_size: int
) -> None:
    """The logprobs of a completion equal those of the same tokens forced by a bias that leaves no choice."""
    request = ask(
        engine, mark=marking(block_size), logprobs=3, temperature=0.5, presence_penalty=1.0, max_tokens=12
    )
    deltas = await collect(engine, request)
    reported = [entry for delta in deltas for entry in delta.logprobs or ()]
    ids = tokens(deltas)
    assert [entry.token_id for entry in reported] == ids
    for index, entry in enumerate(reported):
        forced = replace(
            ask(engine, logprobs=3, max_tokens=1), prompt_ids=(*request.prompt_ids, *ids[:index])
        )
        forced = replace(forced, sampling=replace(forced.sampling, logit_bias={entry.token_id: 1000.0}))
        (plain,) = (await collect(engine, forced))[0].logprobs or ()
        assert plain.logprob == pytest.approx(entry.logprob, abs=1e-4)
        assert [token for token, _ in plain.top] == [token for token, _ in entry.top]


async def test_a_branch_budget_bounds_the_probes_and_keeps_the_watermark(start_engine: StartEngine) -> None:
    engine = start_engine(max_branches=6)
    mark = marking(2)
    deltas = await collect(engine, ask(engine, mark=mark, max_tokens=120, top_k=50))
    assert engine.stats.rows < 120 + 60 * 6 + 20
    assert detect_direct(mark.watermark, KEY, tokens(deltas)).log10_p < -10


async def test_a_request_may_lower_the_branch_budget_and_not_raise_it(start_engine: StartEngine) -> None:
    engine = start_engine(max_branches=6)
    of_the_service = tokens(await collect(engine, ask(engine, mark=marking(2))))
    assert tokens(await collect(engine, ask(engine, mark=marking(2), max_branches=99))) == of_the_service
    assert tokens(await collect(engine, ask(engine, mark=marking(2), max_branches=2))) != of_the_service


async def test_the_adaptive_budget_shrinks_while_many_sequences_run(start_engine: StartEngine) -> None:
    engine = start_engine(adaptive_branches=True)
    idle = engine._decoder.branch_budget
    streams = [engine.generate(ask(engine, mark=marking(2), max_tokens=200)) for _ in range(30)]
    await until(lambda: engine.stats.running == 30)
    assert engine._decoder.branch_budget <= idle
    for stream in streams:
        await stream.aclose()


async def test_closing_the_iterator_frees_the_cache(engine: Engine) -> None:
    stream = engine.generate(ask(engine, max_tokens=200))
    await anext(stream)
    await stream.aclose()
    await until(lambda: engine.stats.running == 0 and engine.stats.cached_tokens == 0)
    assert [delta async for delta in stream] == []


async def test_a_dropped_iterator_frees_the_cache(engine: Engine) -> None:
    engine.generate(ask(engine, max_tokens=200))
    await until(lambda: engine.stats.running == 0 and engine.stats.cached_tokens == 0)


async def test_waiting_for_a_delta_may_be_given_up_and_taken_up_again(engine: Engine) -> None:
    expected = tokens(await collect(engine, ask(engine)))
    stream, ids = engine.generate(ask(engine)), []
    while True:
        try:
            delta = await asyncio.wait_for(anext(stream), timeout=0.0005)
        except TimeoutError:
            continue
        except StopAsyncIteration:
            break
        ids += delta.token_ids
    assert ids == expected


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
    assert (engine.stats.cached_tokens, engine._worker.waiting) == (0, 0)


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


async def test_a_request_beyond_the_context_is_refused_by_its_length_in_tokens(engine: Engine) -> None:
    prompt = len(engine.tokenizer.encode("The quick brown fox"))
    with pytest.raises(ContextTooLong, match=f"256 tokens, but the prompt has {prompt}"):
        engine.generate(ask(engine, max_tokens=257 - prompt))
    assert len(tokens(await collect(engine, ask(engine, max_tokens=256 - prompt)))) == 256 - prompt


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


class Exploding(Watermark):
    """A watermark that fails at the n-th block."""

    def __init__(self, fuse: int) -> None:
        super().__init__("synthid", 2)
        self._fuse = fuse

    def reweight(self, keys: Any, contexts: Any, blocks: Any, probs: Any, offsets: Any) -> Any:
        self._fuse -= 1
        if self._fuse <= 0:
            raise RuntimeError("bad key")
        weighted = super().reweight(keys, contexts, blocks, probs, offsets)
        return np.full_like(weighted, np.nan) if self._fuse == 1 else weighted


@pytest.mark.parametrize("fuse", [1, 2, 3, 6])
async def test_a_fault_of_one_sequence_ends_it_alone(
    engine: Engine, logs: list[structlog.typing.EventDict], fuse: int
) -> None:
    requests = [ask(engine, mark=marking(r), seed=r, max_tokens=40) for r in (1, 2, 2, 3)]
    expected = [tokens(await collect(engine, request)) for request in requests]
    broken = ask(engine, mark=marking(watermark=Exploding(fuse)), max_tokens=40)
    results = await asyncio.gather(
        *(collect(engine, request) for request in [*requests, broken]), return_exceptions=True
    )
    assert isinstance(results[-1], SequenceFailed)
    (log,) = (log for log in logs if log["event"] == "completion_failed")
    assert log["request_id"] == broken.request_id
    assert log["origin"].startswith(("RuntimeError at test_engine.py:", "SequenceFailed at reweighting.py:"))
    assert [tokens(deltas) for deltas in results[:-1] if isinstance(deltas, list)] == expected


async def test_filters_that_fail_for_one_sequence_fail_it_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursed = 0.123

    def filter_or_fail(logits: torch.Tensor, params: Sequence[FilterParams], counts: Sequence[int]) -> Any:
        if any(each.top_p == cursed for each in params):
            raise IndexError("cursed")
        return bounded_rows(logits, params, counts)

    requests = [ask(engine, mark=marking(r), seed=r) for r in (1, 2, 3)]
    expected = [tokens(await collect(engine, request)) for request in requests]
    monkeypatch.setattr(decoder, "bounded_rows", filter_or_fail)
    broken = ask(engine, mark=marking(), top_p=cursed)
    results = await asyncio.gather(
        *(collect(engine, request) for request in [*requests, broken]), return_exceptions=True
    )
    assert isinstance(results[-1], SequenceFailed)
    assert [tokens(deltas) for deltas in results[:-1] if isinstance(deltas, list)] == expected


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    for _ in range(int(seconds / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to that")
