"""A model's answers with and without rows that earlier requests have left in the cache."""

from dataclasses import replace

import pytest
import torch

from tests.unit.gen_service.engine.asking import StartEngine, collect, marking, tokens
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, SamplingParams, SequenceFailed
from ttmark.gen_service.engine.loop.engine import Engine

SYSTEM = tuple(100 + 7 * place % 150 for place in range(70))


def request(prompt: tuple[int, ...], most: int = 12, tenant: str = "acme") -> GenerationRequest:
    sampling = SamplingParams(most, top_k=10, seed=len(prompt), ignore_eos=True, logprobs=2)
    return GenerationRequest("id", prompt, sampling, marking(), tenant=tenant)


async def conversation(engine: Engine, turns: int) -> tuple[list[list[Delta]], list[int]]:
    """Deltas of each turn, and prompt tokens reused for each."""
    history, answers, reused = SYSTEM, [], []
    for turn in range(turns):
        prompt = (*history, 20 + turn, 21, 22)
        answers.append(await collect(engine, request(prompt)))
        reused.append(answers[-1][-1].reused_tokens)
        history = (*prompt, *tokens(answers[-1]))
    return answers, reused


async def test_turns_have_the_same_bits_as_without_reuse(start_engine: StartEngine) -> None:
    engine, plain = start_engine(prefill_chunk=64), start_engine(prefill_chunk=64, prefix_cache=False)
    answers, reused = await conversation(engine, 6)
    expected, nothing = await conversation(plain, 6)
    assert answers == expected
    assert nothing == [0] * 6
    assert reused == [0, 64, 64, 96, 96, 128]
    assert engine.stats.reused_tokens == sum(reused)
    assert plain.stats.prefix_tokens == 0


async def test_without_equal_bits_a_turn_computes_its_new_tokens_alone(start_engine: StartEngine) -> None:
    engine = start_engine(reproducible=False, dtype="float32")
    plain = start_engine(reproducible=False, dtype="float32", prefix_cache=False)
    answers, reused = await conversation(engine, 5)
    expected, _ = await conversation(plain, 5)
    assert list(map(tokens, answers)) == list(map(tokens, expected))
    # All of the last prompt and its answer, but for a last block that was never cached.
    ends = [73 + 15 * turn + 12 for turn in range(4)]
    assert all(end - 2 <= found <= end for end, found in zip(ends, reused[1:], strict=True))


@pytest.mark.parametrize("reproducible", [True, False])
async def test_a_repeatable_request_goes_on_from_equal_bits_alone(
    start_engine: StartEngine, reproducible: bool
) -> None:
    engine = start_engine(prefill_chunk=64, reproducible=reproducible)
    asked = replace(request(SYSTEM), repeatable=True)
    first, second = await collect(engine, asked), await collect(engine, asked)
    assert first == second
    assert (second[-1].reused_tokens > 0) is reproducible
    assert (await collect(engine, request(SYSTEM)))[-1].reused_tokens > 0


@pytest.mark.parametrize("reproducible", [True, False])
async def test_rows_of_a_failed_completion_are_not_used_again(
    start_engine: StartEngine, reproducible: bool
) -> None:
    engine = start_engine(reproducible=reproducible)
    healthy = await collect(engine, request(SYSTEM))
    runner, forward = engine._runner, engine._runner.forward

    def poisoned(*arguments: object) -> list[torch.Tensor]:
        return [logits * float("nan") for logits in forward(*arguments)]  # type: ignore[arg-type]

    runner.forward = poisoned  # type: ignore[method-assign]
    with pytest.raises(SequenceFailed):
        await collect(engine, request(SYSTEM))
    runner.forward = forward  # type: ignore[method-assign]
    again = await collect(engine, request(SYSTEM))
    assert again == healthy
    assert again[-1].reused_tokens == 0
