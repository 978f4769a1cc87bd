"""Whatever runs beside it, a request gets the tokens that it gets alone.

A schedule mixes requests, tenants, arrivals, cancellations, forced preemptions and limits of an engine. It is
run on a real model, pass by pass on one thread, in fp32, to the last bit of the log probabilities.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from ttmark.gen_service.decoding.decoder import Decoder
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.engine.loop.cached_sequence import CachedSequence
from ttmark.gen_service.engine.loop.step import Stepper
from ttmark.gen_service.engine.loop.stream import Mailbox
from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.loaded_model import LoadedModel
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.scheduling.kv_cache_rows import Cuts, ExtentAllocator
from ttmark.gen_service.engine.scheduling.scheduler import PassPlan, Scheduler
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.watermark.schemes.watermark import Watermark

pytestmark = pytest.mark.long

CHUNK = 16
CUT = 8
REQUESTS = 24
# On each of two models.
TIER = 20
SCHEMES = ("synthid", "dipmark", "mcmark", "gumbel")


@dataclass(frozen=True)
class Limits:
    max_sequences: int
    step_rows: int
    capacity: int
    growth: int


GENEROUS = Limits(max_sequences=8, step_rows=400, capacity=4000, growth=256)


@dataclass
class Seen:
    """What the schedules so far have put the engine through."""

    shared_passes: int = 0  # with more than one sequence
    preemptions: int = 0
    moves: int = 0
    cancelled: int = 0
    reused: int = 0  # prompt tokens


class Bench:
    """One model, requests to choose from, and the completion that each has when nothing else runs."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.runner = Runner(loaded.model, KvCache(GENEROUS.capacity))
        self.runner.measure_row_counts()
        rng = np.random.default_rng(0)
        self.requests = [self._request(index, rng) for index in range(REQUESTS)]
        self.seen = Seen()
        self._alone: dict[int, list[Delta]] = {}

    async def alone(self, index: int) -> list[Delta]:
        if index not in self._alone:
            alone = Schedule(GENEROUS, [index], [0], [None], [0], 0.0, 0, reuse=False)
            (self._alone[index],) = await self.run(alone)
        return self._alone[index]

    async def run(self, schedule: "Schedule") -> list[list[Delta]]:
        """Deltas by place in the schedule."""
        limits = schedule.limits
        scheduler: Scheduler[CachedSequence] = Scheduler(
            ExtentAllocator(limits.capacity),
            max_sequences=limits.max_sequences,
            step_rows=limits.step_rows,
            prefill_chunk=CHUNK,
            growth_tokens=limits.growth,
            cuts=Cuts(CHUNK, exact=True) if schedule.reuse else None,
        )
        self._watch(scheduler)
        stepper = Stepper(self.runner, scheduler, Decoder(20))
        rng = np.random.default_rng(schedule.seed)
        sequences = [self._sequence(*each) for each in zip(schedule.requests, schedule.tenants, strict=True)]
        mailboxes = [Mailbox(lambda: None) for _ in sequences]
        passes = 0
        while passes <= max(schedule.arrivals) or stepper.mailboxes:
            for sequence, moment in zip(sequences, schedule.cancellations, strict=True):
                if moment == passes and sequence in stepper.mailboxes:
                    sequence.cancelled = True
                    self.seen.cancelled += 1
            for sequence in list(scheduler.running):
                if rng.random() < schedule.preemption:
                    scheduler.preempt(sequence)
            arriving = [place for place, arrival in enumerate(schedule.arrivals) if arrival == passes]
            stepper.step([(sequences[place], mailboxes[place]) for place in arriving])
            passes += 1
        self.seen.preemptions += scheduler.preemptions
        self.seen.reused += scheduler.reused_tokens
        assert scheduler.reserved_rows == 0
        await asyncio.sleep(0)  # until what was sent has arrived
        return [_delivered(mailbox) for mailbox in mailboxes]

    def _watch(self, scheduler: Scheduler[CachedSequence]) -> None:
        make_plan = scheduler.plan

        def counted() -> PassPlan[CachedSequence]:
            plan = make_plan()
            self.seen.shared_passes += len(plan.works) > 1
            self.seen.moves += len(plan.moves)
            return plan

        scheduler.plan = counted  # type: ignore[method-assign]

    def _sequence(self, index: int, tenant: int) -> CachedSequence:
        request = replace(self.requests[index], tenant=str(tenant))
        return CachedSequence(request, self.loaded.tokenizer, self.loaded.facts.ends, prompt_cut=CUT)

    def _request(self, index: int, rng: np.random.Generator) -> GenerationRequest:
        block_size = 1 + index % 3
        scheme = "gumbel" if block_size == 1 and index % 4 == 3 else SCHEMES[index % 3]
        watermark = Watermark(scheme, block_size, int(rng.integers(1, 5)))
        sampling = SamplingParams(
            max_tokens=int(rng.integers(1, 25)),
            temperature=float(rng.choice([0.0, 0.7, 1.0], p=[0.1, 0.3, 0.6])),
            top_k=int(rng.choice([0, 4, 20])),
            top_p=float(rng.choice([0.8, 0.95])),
            seed=index,
            stop=(" ",) if index % 5 == 0 else (),
            ignore_eos=bool(index % 2),
            presence_penalty=0.5 * (index % 7 == 0),
            repetition_penalty=1.3 if index % 5 == 0 else 1.0,
            logprobs=2 if index % 6 == 0 else None,
            max_branches=int(rng.choice([3, 12])),
        )
        prompt = rng.integers(1, 300, int(rng.integers(1, 49))).tolist()
        shared = np.random.default_rng(index % 3).integers(1, 300, 40)
        if index % 4:
            prompt = [*shared[: int(rng.integers(1, 41))].tolist(), *prompt][:48]
        marking = Marking("key", 1, "profile", watermark, rng.bytes(16)) if index % 8 else None
        return GenerationRequest(str(index), tuple(prompt), sampling, marking)


@dataclass(frozen=True)
class Schedule:
    limits: Limits
    requests: list[int]
    arrivals: list[int]
    cancellations: list[int | None]
    tenants: list[int]
    preemption: float
    seed: int
    reuse: bool = True

    @classmethod
    def draw(cls, seed: int) -> "Schedule":
        rng = np.random.default_rng([9, seed])
        count = int(rng.integers(2, 7))
        arrivals = rng.integers(0, 20, count).tolist()
        return cls(
            Limits(
                max_sequences=int(rng.integers(1, 7)),
                step_rows=int(rng.choice([16, 40, 100, 400])),
                capacity=int(rng.choice([75, 140, 4000])),
                growth=int(rng.choice([2, 256])),
            ),
            rng.integers(0, REQUESTS, count).tolist(),
            arrivals,
            [a + int(rng.integers(1, 25)) if rng.random() < 0.2 else None for a in arrivals],
            np.random.default_rng([8, seed]).integers(0, 3, count).tolist(),
            float(rng.choice([0.0, 0.02, 0.2])),
            seed,
        )


@pytest.fixture(scope="module")
def bench(model_folder: Path) -> Bench:
    return Bench(load_model(str(model_folder), EngineSettings()))


def _delivered(mailbox: Mailbox) -> list[Delta]:
    """What has arrived, but for how much was reused: that may differ."""
    items = [mailbox.items.get_nowait() for _ in range(mailbox.items.qsize())]
    return [replace(item, reused_tokens=0) for item in items]  # type: ignore[type-var]


async def check(bench: Bench, seeds: range) -> None:
    for seed in seeds:
        schedule = Schedule.draw(seed)
        for place, deltas in enumerate(await bench.run(schedule)):
            expected = await bench.alone(schedule.requests[place])
            if schedule.cancellations[place] is not None:
                expected = expected[: len(deltas)]
            assert deltas == expected, f"schedule {seed}, request {place}"


@pytest.mark.parametrize(
    "count", [TIER, pytest.param(250, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
async def test_any_schedule_gives_each_request_what_it_gets_alone(
    bench: Bench, record_result: Callable[[str, str, str], None], count: int
) -> None:
    await check(bench, range(count))
    seen = bench.seen
    assert seen.reused > 100
    if count > TIER:
        assert seen.preemptions > 500
        assert seen.moves > 100
        assert seen.reused > 1_000
        assert seen.cancelled > 50
        record_result(
            f"{count} schedules with cancellations and preemptions, r = 1, 2, 3, {bench.loaded.name} model",
            "each request gets the tokens that it gets alone",
            f"all equal; {seen.shared_passes:,} shared passes, {seen.preemptions:,} preemptions, "
            f"{seen.moves:,} moves, {seen.cancelled} cancellations, {seen.reused:,} prompt tokens reused",
        )
