"""Texts that the model reads: as the model alone says it, in chunks, beside others, and cancelled."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import RepetitionPenaltyLogitsProcessor

from tests.unit.gen_service.engine.asking import StartEngine, SteppedByHand, collect
from ttmark.evaluation.engine_source import CausalModel
from ttmark.gen_service.decoding import logprobs as logprobs_module
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.gen_service.decoding.request import (
    GenerationRequest,
    ReadingRequest,
    SamplingParams,
    SequenceFailed,
)
from ttmark.gen_service.engine.errors import ContextTooLong, OutOfTime, Overloaded
from ttmark.gen_service.engine.loop import cached_sequence
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.shared.watermark.likelihood.hidden_markov_model import load_mixtures

OPEN = FilterParams()
CHAT = FilterParams(0.7, 50, 0.9)


def ids(count: int, seed: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(1, 300, count).tolist())


def reading(
    text: int, prompt: int = 0, filters: FilterParams = OPEN, tenant: str = "acme", penalty: float = 1.0
) -> ReadingRequest:
    return ReadingRequest("id", ids(prompt, 1), ids(text, 2), filters, tenant, penalty)


@pytest.fixture(scope="session")
def model(tiny_model: Path) -> CausalModel:
    return CausalModel(str(tiny_model))


def expected(model: CausalModel, request: ReadingRequest) -> np.ndarray:
    """From the logits of the whole text at once, held in memory."""
    text, prompt = request.text_ids, request.prompt_ids
    logits = model.logits(prompt, text) if prompt else model.logits(text[:1], text[1:])
    whole = torch.tensor([[*prompt, *text]])
    penalty = RepetitionPenaltyLogitsProcessor(request.repetition_penalty)
    ends = range(whole.shape[1] - len(logits), whole.shape[1])
    logits = torch.cat([penalty(whole[:, :end], row[None]) for end, row in zip(ends, logits, strict=True)])
    supports = filter_rows(logits, [request.filters] * len(logits))
    found = [
        0.0 if support is None else support.probability(token)
        for support, token in zip(supports, text[-len(logits) :], strict=True)
    ]
    with np.errstate(divide="ignore"):
        return np.log([1.0] * (len(text) - len(found)) + found)


@pytest.mark.parametrize("reproducible", [True, False])
@pytest.mark.parametrize(
    ("filters", "penalty"), [(OPEN, 1.0), (CHAT, 1.0), (FilterParams(1.0, 0, 0.5), 1.0), (CHAT, 1.3)]
)
async def test_log_probabilities_are_those_of_the_whole_pass_however_it_is_cut(
    start_engine: StartEngine, model: CausalModel, reproducible: bool, filters: FilterParams, penalty: float
) -> None:
    engine = start_engine(reproducible=reproducible, prefill_chunk=48, step_rows=80)
    for text, prompt in ((130, 0), (130, 1), (130, 100), (1, 64), (2, 0), (64, 1)):
        request = reading(text, prompt, filters, penalty=penalty)
        found = await engine.read(request)
        np.testing.assert_allclose(found, expected(model, request), rtol=1e-3, atol=1e-4)


async def test_classes_of_blocks_are_equal_in_chunks_and_in_one_pass(start_engine: StartEngine) -> None:
    mixtures, request = load_mixtures(1), reading(200, 20, FilterParams(1.0, 50))
    in_chunks, in_one = [
        mixtures.classes(await start_engine(prefill_chunk=size).read(request)).tolist() for size in (32, 256)
    ]
    assert in_one == in_chunks
    assert len(set(in_chunks)) > 2


async def test_a_text_takes_large_pieces_of_a_pass_unless_somebody_writes(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    take = cached_sequence.TextReading.take

    def counted(self: cached_sequence.TextReading, logits: torch.Tensor) -> object:
        rows.append(len(logits))
        return take(self, logits)

    monkeypatch.setattr(cached_sequence.TextReading, "take", counted)
    by_hand = SteppedByHand(tiny_model)
    text = cached_sequence.TextReading(reading(150, 90), by_hand.engine.tokenizer, float("inf"), 32)
    by_hand.submit(text)
    assert rows == [239 - 64]  # of the prompt the piece of 32 tokens alone that the text begins in
    text = cached_sequence.TextReading(reading(150), by_hand.engine.tokenizer, float("inf"), 32)
    sampling = SamplingParams(max_tokens=200, top_k=30, ignore_eos=True)
    written = [by_hand.sequence(GenerationRequest("id", ids(20, 9), sampling, None)) for _ in range(8)]
    by_hand.submit(*written, text)
    by_hand.steps_until_the_end_of(written[0])
    assert rows[1:] == [64, 64, 21]


async def test_what_stands_before_a_text_may_come_from_the_cache_and_the_text_may_not(
    start_engine: StartEngine, model: CausalModel
) -> None:
    engine = start_engine()
    request = reading(60, 100, CHAT)
    first = await engine.read(request)
    again = await engine.read(request)
    assert engine.stats.reused_tokens == 96  # a multiple of 32 below the prompt's last token
    np.testing.assert_array_equal(first, again)
    await engine.read(ReadingRequest("id", (), request.prompt_ids, CHAT, "acme"))
    assert engine.stats.reused_tokens == 96


async def test_readings_and_completions_share_the_passes(engine: Engine, model: CausalModel) -> None:
    def completion(seed: int) -> GenerationRequest:
        params = SamplingParams(max_tokens=40, top_k=30, seed=seed, ignore_eos=True)
        return GenerationRequest("id", ids(20, 9), params, None)

    alone = [await collect(engine, completion(seed)) for seed in range(3)]
    requests = [reading(100 + 10 * i, 30 * i, CHAT) for i in range(4)]
    written = (collect(engine, completion(seed)) for seed in range(3))
    *read, a, b, c = await asyncio.gather(*map(engine.read, requests), *written)
    assert [a, b, c] == alone
    for request, found in zip(requests, read, strict=True):
        np.testing.assert_allclose(found, expected(model, request), rtol=1e-3, atol=1e-4)


async def test_a_reading_that_is_cancelled_leaves_the_engine(engine: Engine) -> None:
    task = asyncio.create_task(engine.read(reading(200)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await engine.read(reading(2))  # no step begins before the one that left the other out has ended
    assert (engine.stats.running, engine.stats.cached_tokens) == (0, 0)


async def test_limits_of_completions_hold_for_readings(start_engine: StartEngine) -> None:
    engine = start_engine(max_sequences=1, max_waiting=0)
    with pytest.raises(ContextTooLong, match="prompt and text have 257"):
        await engine.read(reading(200, 57))
    results = await asyncio.gather(*(engine.read(reading(200)) for _ in range(4)), return_exceptions=True)
    assert any(isinstance(result, Overloaded) for result in results)
    assert any(isinstance(result, np.ndarray) for result in results)
    late = start_engine(request_seconds=0.0)
    with pytest.raises(OutOfTime):
        await late.read(reading(50))


async def test_logits_that_are_not_finite_fail_the_reading_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(logits: torch.Tensor, params: list[FilterParams]) -> list[None]:
        return [None] * len(params)

    monkeypatch.setattr(logprobs_module, "filter_rows", broken)
    with pytest.raises(SequenceFailed, match="not finite"):
        await engine.read(reading(50, filters=CHAT))
    monkeypatch.undo()
    await engine.read(reading(50))


def test_a_text_without_a_token_that_the_model_speaks_of_is_no_request() -> None:
    for prompt, text in ((0, 0), (3, 0), (0, 1)):
        with pytest.raises(ValueError, match="at least two tokens"):
            reading(text, prompt)


@pytest.mark.parametrize("spoilt", [float("nan"), float("inf")])
def test_a_logit_that_is_not_finite_anywhere_in_a_row_fails_a_plain_reading(spoilt: float) -> None:
    logits = torch.zeros(3, 10)
    logits[1, 7] = spoilt
    logprobs = logprobs_module.TextLogprobs(ReadingRequest("id", (1,), (2, 3, 4), OPEN))
    with pytest.raises(SequenceFailed, match="not finite"):
        logprobs.take(0, logits)


def test_what_is_too_unlikely_for_a_probability_has_a_log_probability() -> None:
    logits = torch.zeros(1, 4)
    logits[0, 1] = -2000.0
    logprobs = logprobs_module.TextLogprobs(ReadingRequest("id", (3,), (1,), OPEN))
    logprobs.take(0, logits)
    assert logprobs.values[0] == pytest.approx(-2000 - np.log(3), abs=1e-9)


async def test_a_plain_reading_is_the_log_softmax_of_the_model_and_the_same_bits_in_any_company(
    engine: Engine, model: CausalModel
) -> None:
    requests = [reading(90 + 7 * seed, 1 + seed) for seed in range(6)]
    alone = [await engine.read(request) for request in requests]
    together = await asyncio.gather(*map(engine.read, requests))
    for request, first, second in zip(requests, alone, together, strict=True):
        np.testing.assert_array_equal(first, second)
        logits = model.logits(request.prompt_ids, request.text_ids)
        said = torch.log_softmax(logits.double(), dim=-1).numpy()
        np.testing.assert_allclose(first, said[np.arange(len(said)), request.text_ids], atol=1e-4)


async def test_a_text_that_was_read_leaves_nothing_in_the_cache(start_engine: StartEngine) -> None:
    engine = start_engine()
    await engine.read(reading(200))
    await engine.read(reading(2))  # the step after the first one's end
    assert (engine.stats.prefix_tokens, engine.stats.cached_tokens) == (0, 0)
