"""Readings take no more than their share from what is written: rows, places and cache rows are counted."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.fake_job import FakeJob, run
from tests.unit.gen_service.engine.asking import SteppedByHand
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.decoding.request import GenerationRequest, ReadingRequest, SamplingParams
from ttmark.gen_service.engine.errors import Overloaded
from ttmark.gen_service.engine.loop.cached_sequence import CachedSequence, TextReading
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.scheduling.kv_cache_rows import ExtentAllocator
from ttmark.gen_service.engine.scheduling.scheduler import Scheduler
from ttmark.gen_service.engine.settings import EngineSettings

SHARE = 0.2
STEP_ROWS, CHUNK = 512, 64


class Watched:
    """A scheduler whose rows are counted by kind."""

    def __init__(self, capacity: int = 100_000, share: float = SHARE, **limits: int) -> None:
        own = {"max_sequences": 32, "step_rows": STEP_ROWS, "prefill_chunk": CHUNK} | limits
        self.on: Scheduler[FakeJob] = Scheduler(ExtentAllocator(capacity), reading_share=share, **own)
        self.written = self.read = self.passes = 0

    def write(self, count: int, limit: int = 100_000, **shape: int) -> list[FakeJob]:
        jobs = [FakeJob(1, limit, **shape) for _ in range(count)]
        for job in jobs:
            self.on.add(job)
        return jobs

    def flood(self, count: int, length: int = 1000, tenant: str = "acme") -> list[FakeJob]:
        """Texts of `length` tokens."""
        readings = [FakeJob(length, length + 1, tenant=tenant) for _ in range(count)]
        for reading in readings:
            self.on.readings.add(reading)
        return readings

    def step(self) -> set[FakeJob]:
        plan = self.on.plan()
        assert plan.works or not (self.on.running or self.on.waiting or self.on.readings)
        assert len(plan.works) == 1 or sum(work.rows for work in plan.works.values()) <= STEP_ROWS
        for job, work in plan.works.items():
            if job in self.on.readings.running:
                self.read += work.rows
            else:
                self.written += work.rows
        self.passes += bool(plan.works)
        run(plan, self.on)
        return set(plan.works)


@pytest.mark.parametrize("width", [1, 8, 60, 500])
def test_writing_beside_a_flood_of_readings_takes_at_most_its_share_of_steps_and_rows_more(
    width: int,
) -> None:
    jobs = Watched()
    (writer,) = jobs.write(1, probe_rows=width)
    jobs.flood(200)
    steps = 2_000
    for _ in range(steps):
        jobs.step()
        assert jobs.read <= SHARE * jobs.written
    served = jobs.written / width
    assert steps <= (1 + SHARE) * served + 1
    # And they do get it: but for what is saved for a pass, and for what is left empty of one of their own.
    assert jobs.read >= 0.7 * SHARE * jobs.written - STEP_ROWS - CHUNK
    assert writer.extent is not None


def test_readings_do_not_starve_while_everybody_who_writes_fills_the_passes() -> None:
    jobs = Watched()
    jobs.write(64, probe_rows=16)
    jobs.flood(200)
    for _ in range(1_000):
        jobs.step()
    assert jobs.read == pytest.approx(SHARE * jobs.written, rel=0.02)


def test_while_nothing_is_written_readings_have_the_passes_for_themselves() -> None:
    jobs = Watched()
    everything = jobs.flood(12, length=640)
    steps = 0
    while jobs.on.readings:
        jobs.step()
        steps += 1
    assert steps == 12 * 640 / CHUNK / 6  # so many places
    assert all(reading.forgotten == 1 for reading in everything)


def test_who_reads_has_saved_nothing_up_while_others_wrote() -> None:
    jobs = Watched()
    jobs.write(1, probe_rows=100)
    for _ in range(1_000):
        jobs.step()
    written = jobs.written
    jobs.flood(50)
    for _ in range(100):
        jobs.step()
    assert 0 < jobs.read <= SHARE * (jobs.written - written)


def test_readings_hold_no_places_of_those_who_write() -> None:
    jobs = Watched(max_sequences=10)
    jobs.flood(50)
    jobs.step()
    jobs.write(10)
    for _ in range(3):
        jobs.step()
    assert len(jobs.on.running) == 10
    assert len(jobs.on.readings.running) == 2


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 20), st.sampled_from("abcdef"), st.sampled_from([9, 64, 1900]), st.integers(1, 8)
        ),
        max_size=20,
    ),
    st.lists(st.integers(2, CHUNK), min_size=1, max_size=20),
    st.sampled_from([0, 8, 30]),
)
def test_a_tenant_s_short_reading_waits_for_a_pass_whatever_others_have(
    others: list[tuple[int, str, int, int]], lengths: list[int], width: int
) -> None:
    jobs = Watched()
    jobs.write(bool(width), probe_rows=width)
    moments = iter(range(100_000))
    for length in lengths:
        (short,) = jobs.flood(1, length, tenant="modest")
        passes, written = 0, jobs.written
        while not short.forgotten:
            moment = next(moments)
            for _, tenant, theirs, count in (each for each in others if each[0] == moment):
                jobs.flood(count, theirs, tenant)
            jobs.step()
            passes += 1
        # While something is written, readings have what it earned: a pass of others' at most, and its own.
        assert passes <= 2 if not width else jobs.written - written <= (2 * STEP_ROWS + length) / SHARE
    assert jobs.read <= SHARE * jobs.written or not width


def test_a_tenant_s_short_text_overtakes_its_long_ones_but_not_for_longer_than_turns_would_take() -> None:
    jobs = Watched()
    first, *_ = jobs.flood(20, length=1_900)
    for _ in range(5):
        jobs.step()
    (short,) = jobs.flood(1, length=CHUNK)
    assert short in jobs.step()
    passes = 0
    while not first.forgotten:
        jobs.flood(16 - len(jobs.on.readings.waiting), length=CHUNK)
        jobs.step()
        passes += 1
    assert passes <= 1_900 * 40 / STEP_ROWS


def test_a_reading_s_large_piece_is_not_overtaken_by_small_ones_for_ever() -> None:
    jobs = Watched(prefill_chunk=256)
    jobs.write(1, probe_rows=300)
    (large,) = jobs.flood(1, length=256, tenant="modest")
    while not large.forgotten:
        jobs.flood(8 - len(jobs.on.readings.waiting), length=16)
        jobs.step()
        assert jobs.written < 5 * STEP_ROWS / SHARE


def test_a_cache_full_of_one_tenant_s_texts_has_room_for_another_s() -> None:
    jobs = Watched(capacity=4_010)
    jobs.flood(4, length=1_000)
    jobs.step()
    (modest,) = jobs.flood(1, length=CHUNK, tenant="modest")
    assert modest in jobs.step()
    while jobs.on.readings:
        jobs.step()
    assert jobs.on.reserved_rows == 0


def test_readings_give_their_cache_rows_to_whoever_writes_and_are_read_again() -> None:
    jobs = Watched(capacity=2_100, growth_tokens=100)
    readings = jobs.flood(2, length=1_000)
    jobs.step()
    writers = jobs.write(6, limit=300)
    while jobs.on.running or jobs.on.waiting:
        jobs.step()
    assert {writer.forgotten for writer in writers} == {1}  # at their ends: nobody gave way to a reading
    while jobs.on.readings:
        jobs.step()
    assert max(reading.forgotten for reading in readings) > 1
    assert jobs.on.reserved_rows == 0


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.integers(0, 80), st.booleans(), st.integers(1, 60), st.integers(1, 40)),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([0.05, 0.2, 1.0]),
    st.sampled_from([400, 5_000]),
)
def test_whatever_comes_while_something_is_written_readings_stay_within_their_share(
    arrivals: list[tuple[int, bool, int, int]], share: float, capacity: int
) -> None:
    jobs = Watched(capacity, share, max_sequences=4, prefill_chunk=16, growth_tokens=20)
    written, read, earned = 0, 0, 0.0
    everything: list[FakeJob] = []
    for moment in range(20_000):
        for when, reading, length, rows in arrivals:
            if when != moment:
                continue
            if reading:
                everything += jobs.flood(1, length)
            else:
                everything += jobs.write(1, limit=length + 1, probe_rows=rows, probes=length)
        writing = bool(jobs.on.running or jobs.on.waiting)
        jobs.step()
        if writing:
            assert jobs.read - read <= share * (jobs.written - written) + earned + 1e-6
        else:
            # What was earned before and is not spent stays earned.
            written, read, earned = jobs.written, jobs.read, max(0.0, jobs.on._share.credit)
            if not jobs.on.readings and moment > 80:
                break
    assert all(job.forgotten for job in everything)
    assert jobs.on.reserved_rows == 0


def writer(on: SteppedByHand, seed: int) -> CachedSequence:
    sampling = SamplingParams(40, top_k=30, seed=seed, ignore_eos=True)
    return on.sequence(GenerationRequest("id", tuple(range(1, 20)), sampling, None, tenant="acme"))


def readings(on: SteppedByHand) -> Iterator[TextReading]:
    for seed in range(80):
        text = tuple((7 * seed + 3 * place) % 290 + 1 for place in range(150))
        request = ReadingRequest("id", (), text, FilterParams(), "acme")
        yield TextReading(request, on.engine.tokenizer, float("inf"), 32)


async def test_an_engine_s_writer_takes_no_more_steps_in_a_flood_and_its_share_of_rows(
    tiny_model: Path,
) -> None:
    def steps(flood: bool) -> tuple[int, int, int, list[int]]:
        by_hand = SteppedByHand(tiny_model)
        if flood:
            by_hand.submit(*readings(by_hand))
        begun, written = by_hand.engine.stats.rows, writer(by_hand, 1)
        by_hand.submit(written)
        count = 1 + by_hand.steps_until_the_end_of(written)
        return count, by_hand.engine.stats.rows - begun, len(by_hand.stepper.mailboxes), written.tokens

    alone, rows_alone, _, tokens = steps(flood=False)
    beside, rows_beside, left, same_tokens = steps(flood=True)
    assert beside <= (1 + SHARE) * alone
    assert rows_beside <= (1 + SHARE) * rows_alone
    assert left > 40
    assert same_tokens == tokens


async def test_a_queue_full_of_readings_refuses_readings_and_nothing_that_is_written(
    tiny_model: Path,
) -> None:
    engine = Engine.load(str(tiny_model), EngineSettings(max_sequences=2, max_waiting=8))
    by_hand = SteppedByHand(tiny_model)
    engine._accepting = True
    engine._thread.is_alive = lambda: True  # type: ignore[method-assign]
    first, second, third, *_ = readings(by_hand)
    for reading in (first, second):
        engine._submit(reading)
    with pytest.raises(Overloaded):
        engine._submit(third)
    for seed in range(10):
        engine._submit(writer(by_hand, seed))
    with pytest.raises(Overloaded):
        engine.check_queue("acme")
