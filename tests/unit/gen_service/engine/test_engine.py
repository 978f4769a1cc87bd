"""The engine as its callers see it."""

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.harness.waiting import until
from tests.unit.gen_service.engine.asking import (
    KEY,
    StartEngine,
    ask,
    collect,
    marking,
    text,
    together,
    tokens,
)
from ttmark.gen_service.engine.errors import ContextTooLong
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.schemes.watermark import Watermark


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


async def test_a_context_that_comes_again_is_not_watermarked_again(engine: Engine) -> None:
    bias = dict.fromkeys((40, 41), 60.0)
    mark = marking(watermark=Watermark("synthid", 2, 1))
    deltas = await collect(engine, ask(engine, mark=mark, max_tokens=60, logit_bias=bias))
    report = deltas[-1].report
    assert report is not None
    assert report.reasons["repeated_context"] >= 25


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("max_tokens", [1, 2, 3, 10])
async def test_a_completion_has_exactly_max_tokens_and_ends_with_length(
    engine: Engine, block_size: int, max_tokens: int
) -> None:
    deltas = await collect(engine, ask(engine, mark=marking(block_size), max_tokens=max_tokens))
    assert len(tokens(deltas)) == max_tokens
    assert text(deltas) == engine.tokenizer.decode(tokens(deltas))
    assert [delta.finish_reason for delta in deltas] == [None] * (len(deltas) - 1) + ["length"]


@pytest.mark.parametrize("block_size", [1, 2, 3])
async def test_an_end_of_text_token_ends_the_completion_and_has_no_text(
    engine: Engine, block_size: int
) -> None:
    lengths, mark = set(), marking(block_size)
    asked = [ask(engine, mark=mark, ignore_eos=False, seed=seed, logit_bias={0: 6.0}) for seed in range(8)]
    for deltas in await together(engine, asked):
        ids = tokens(deltas)
        lengths.add(len(ids) % block_size)
        assert deltas[-1].finish_reason == "stop"
        assert ids.index(0) == len(ids) - 1
        assert text(deltas) == engine.tokenizer.decode(ids[:-1])
    assert lengths == set(range(block_size))


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
    forced = [
        replace(
            ask(engine, logprobs=3, max_tokens=1, logit_bias={token: 1000.0}),
            prompt_ids=(*request.prompt_ids, *ids[:index]),
        )
        for index, token in enumerate(ids)
    ]
    for entry, alone in zip(reported, await together(engine, forced), strict=True):
        (plain,) = alone[0].logprobs or ()
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


class Passes:
    """Lets an engine make as many passes as a test allows."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.allow = threading.Semaphore(0)
        self._engine = engine
        self._forward = engine._runner.forward
        monkeypatch.setattr(engine._runner, "forward", self._waiting)

    def _waiting(self, pieces: Any) -> Any:
        # The time limit is for a test that fails: the engine's thread must end with it.
        self.allow.acquire(timeout=5)
        return self._forward(pieces)

    async def until_nothing_is_in_hand(self) -> int:
        """Allows the pass that had begun; how many there were in all."""
        self.allow.release()
        await until(lambda: self._engine.stats.running == 0 and self._engine.stats.cached_tokens == 0)
        assert not self._engine._stepper.mailboxes
        assert self._engine._stepper.drain_rate._last is None, "what comes next says nothing of the rate"
        return self._engine.stats.passes


@pytest.fixture
def gated(start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, Passes]:
    engine = start_engine(prefix_cache=False)
    return engine, Passes(engine, monkeypatch)


@pytest.mark.parametrize(("taken", "closes"), [(1, True), (0, False), (1, False)])
async def test_closing_or_dropping_the_iterator_frees_the_cache(
    gated: tuple[Engine, Passes], taken: int, closes: bool
) -> None:
    engine, passes = gated
    stream = engine.generate(ask(engine, max_tokens=200))
    passes.allow.release(3)
    for _ in range(taken):
        await anext(stream)
    await until(lambda: engine.stats.passes == 3)
    if closes:
        await stream.aclose()
        assert [delta async for delta in stream] == []
    del stream
    assert await passes.until_nothing_is_in_hand() <= 4


async def test_dropping_an_iterator_that_has_ended_cancels_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[object] = []
    monkeypatch.setattr(engine, "_cancel", cancelled.append)
    await collect(engine, ask(engine, max_tokens=3))
    with pytest.raises(ContextTooLong):
        engine.generate(ask(engine, max_tokens=1000))
    stream = engine.generate(ask(engine, max_tokens=3))
    await stream.aclose()
    del stream
    assert len(cancelled) == 1


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
