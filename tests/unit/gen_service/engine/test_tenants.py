"""Several tenants on one engine: steps and places are counted, not seconds."""

from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.gen_service.engine.asking import StartEngine, SteppedByHand, marking
from ttmark.gen_service.decoding.request import GenerationRequest
from ttmark.gen_service.decoding.request import SamplingParams as Sampling
from ttmark.gen_service.engine.errors import Overloaded


def ask(tenant: str, max_tokens: int, seed: int = 1) -> GenerationRequest:
    sampling = Sampling(max_tokens, top_k=30, seed=seed, ignore_eos=True)
    return GenerationRequest("id", tuple(range(1, 20)), sampling, marking(), tenant=tenant)


async def test_eight_tokens_behind_sixty_four_long_sequences_take_two_steps_more_than_alone(
    tiny_model: Path,
) -> None:
    alone = SteppedByHand(tiny_model)
    expected = alone.sequence(ask("modest", 8))
    alone.submit(expected)
    steps_alone = alone.steps_until_the_end_of(expected)

    busy = SteppedByHand(tiny_model)
    greedy = [busy.sequence(ask("greedy", 200, seed)) for seed in range(64)]
    busy.submit(*greedy)
    for _ in range(5):
        busy.submit()
    assert busy.engine.stats.waiting == 32
    assert busy.engine.stats.waiting_tenants == 1
    newcomer = busy.sequence(ask("modest", 8))
    busy.submit(newcomer)
    assert busy.steps_until_the_end_of(newcomer) <= steps_alone + 2
    assert newcomer.tokens == expected.tokens
    assert busy.engine.stats.preemptions == 0
    assert not any(sequence.finish_reason for sequence in greedy)


async def test_a_full_queue_still_takes_a_tenant_that_has_less_than_its_share(
    start_engine: StartEngine,
) -> None:
    engine = start_engine(max_sequences=2, max_waiting=2)
    streams = [engine.generate(ask("greedy", 40)) for _ in range(4)]
    for refused in (engine.check_queue, lambda tenant: engine.generate(ask(tenant, 200))):
        with pytest.raises(Overloaded):
            refused("greedy")
    streams += [engine.generate(ask("modest", 8)) for _ in range(2)]
    with pytest.raises(Overloaded):
        engine.check_queue("modest")
    for stream in streams:
        assert sum(len(delta.token_ids) for delta in [delta async for delta in stream]) in (8, 40)


async def test_many_tenants_cannot_make_the_queue_longer_than_twice_its_length(
    start_engine: StartEngine,
) -> None:
    engine = start_engine(max_sequences=2, max_waiting=2)
    streams = [engine.generate(ask("greedy", 200)) for _ in range(4)]
    for number in range(9):
        with suppress(Overloaded):
            streams.append(engine.generate(ask(f"tenant {number}", 200)))
    assert 4 < len(streams) <= 8
    for stream in streams:
        await stream.aclose()
