"""Several tenants on one engine: steps and places are counted, not seconds."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ttmark.gen_service.engine import Engine, EngineSettings, GenerationRequest, Marking, Overloaded
from ttmark.gen_service.engine import SamplingParams as Sampling
from ttmark.gen_service.engine.cached_sequence import CachedSequence
from ttmark.gen_service.engine.stream import Mailbox
from ttmark.shared.watermark import Watermark

MARK = Marking("key", 1, "profile", Watermark("synthid", 2), bytes(range(16)))


def ask(tenant: str, max_tokens: int, seed: int = 1) -> GenerationRequest:
    sampling = Sampling(max_tokens, top_k=30, seed=seed, ignore_eos=True)
    return GenerationRequest("id", tuple(range(1, 20)), sampling, MARK, tenant=tenant)


class SteppedByHand:
    """An engine whose steps a test makes."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine.load(str(folder), EngineSettings(max_sequences=32, max_branches=8))
        self._stepper = self.engine._stepper

    def submit(self, *requests: GenerationRequest) -> list[CachedSequence]:
        """Makes a step in which the requests come in."""
        arrivals = [
            (CachedSequence(each, self.engine.tokenizer, self.engine.eos_token_ids), Mailbox(lambda: None))
            for each in requests
        ]
        self._stepper.step(arrivals)
        return [sequence for sequence, _ in arrivals]

    def steps_until_the_end_of(self, sequence: CachedSequence) -> int:
        """How many more steps it takes."""
        steps = 0
        while sequence.finish_reason is None:
            self._stepper.step([])
            steps += 1
        return steps


async def test_eight_tokens_behind_sixty_four_long_sequences_take_two_steps_more_than_alone(
    tiny_model: Path,
) -> None:
    alone = SteppedByHand(tiny_model)
    (expected,) = alone.submit(ask("modest", 8))
    steps_alone = alone.steps_until_the_end_of(expected)

    busy = SteppedByHand(tiny_model)
    greedy = busy.submit(*(ask("greedy", 200, seed) for seed in range(64)))
    for _ in range(5):
        busy.submit()
    assert busy.engine.stats.waiting == 32
    assert busy.engine.stats.waiting_tenants == 1
    (newcomer,) = busy.submit(ask("modest", 8))
    assert busy.steps_until_the_end_of(newcomer) <= steps_alone + 2
    assert newcomer.tokens == expected.tokens
    assert busy.engine.stats.preemptions == 0
    assert not any(sequence.finish_reason for sequence in greedy)


async def test_a_full_queue_still_takes_a_tenant_that_has_less_than_its_share(
    start_engine: Callable[..., Engine],
) -> None:
    engine = start_engine(max_sequences=2, max_waiting=2)
    streams = [engine.generate(ask("greedy", 200)) for _ in range(4)]
    for refused in (engine.check_queue, lambda tenant: engine.generate(ask(tenant, 200))):
        with pytest.raises(Overloaded):
            refused("greedy")
    streams += [engine.generate(ask("modest", 8)) for _ in range(2)]
    with pytest.raises(Overloaded):
        engine.check_queue("modest")
    for stream in streams:
        assert sum(len(delta.token_ids) for delta in [delta async for delta in stream]) in (8, 200)


async def test_many_tenants_cannot_make_the_queue_longer_than_twice_its_length(
    start_engine: Callable[..., Engine],
) -> None:
    engine = start_engine(max_sequences=2, max_waiting=2)
    streams = [engine.generate(ask("greedy", 200)) for _ in range(4)]
    for number in range(9):
        with suppress(Overloaded):
            streams.append(engine.generate(ask(f"tenant {number}", 200)))
    assert 4 < len(streams) <= 8
    for stream in streams:
        await stream.aclose()
