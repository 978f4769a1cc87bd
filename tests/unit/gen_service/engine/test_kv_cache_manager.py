"""Rows of the cache: how they are given out, what stays for later prompts, and how it yields. No tensors."""

import time
from array import array
from itertools import pairwise

import numpy as np
import pytest

from tests.harness.fake_job import FakeJob, run
from ttmark.gen_service.engine.scheduling.kv_cache_rows import (
    Cuts,
    ExtentAllocator,
    Prefix,
    Prefixes,
    common_tokens,
)
from ttmark.gen_service.engine.scheduling.schedulable import Extent
from ttmark.gen_service.engine.scheduling.scheduler import PassPlan, Scheduler

CHUNK = 8


def scheduler(capacity: int = 1000, *, exact: bool = True, keeps: bool = True) -> Scheduler[FakeJob]:
    return Scheduler(
        ExtentAllocator(capacity),
        max_sequences=4,
        step_rows=40,
        prefill_chunk=CHUNK,
        growth_tokens=4,
        cuts=Cuts(CHUNK, exact=exact) if keeps else None,
    )


def job(tokens: list[int], more: int = 4, tenant: str = "acme") -> FakeJob:
    return FakeJob(len(tokens), len(tokens) + more, tokens=list(tokens), tenant=tenant)


def rows_for(jobs: Scheduler[FakeJob], asked: FakeJob) -> int:
    """Runs a job alone; the rows that were computed for it."""
    jobs.add(asked)
    rows = 0
    while jobs.running or jobs.waiting:
        step = jobs.plan()
        rows += sum(work.rows for work in step.works.values())
        run(step, jobs)
    return rows


def numbers(count: int, start: int = 0) -> list[int]:
    return list(range(start, start + count))


@pytest.mark.parametrize(("length", "reused"), [(7, 0), (8, 0), (9, 8), (16, 8), (17, 16)])
def test_at_least_the_last_token_of_a_prompt_is_computed(length: int, reused: int) -> None:
    jobs = scheduler()
    rows_for(jobs, job(numbers(40)))
    again = job(numbers(length))
    rows_for(jobs, again)
    assert again.reused == reused


def after_one_that_runs(other: FakeJob) -> tuple[FakeJob, PassPlan[FakeJob]]:
    """A prompt of `acme` in full in the cache, whose sequence goes on, and the step that takes `other` in."""
    jobs = scheduler()
    running = job(numbers(32), more=50)
    jobs.add(running)
    while running.cached < 32:
        run(jobs.plan(), jobs)
    jobs.add(other)
    return running, jobs.plan()


def test_no_rows_of_a_prompt_that_still_runs_are_shared_across_tenants() -> None:
    stranger = job([*numbers(24), 900], tenant="other")
    _, step = after_one_that_runs(stranger)
    assert stranger.reused == 0
    assert not step.moves


def test_each_tenant_keeps_its_own_rows_of_a_prompt_that_several_send() -> None:
    jobs = scheduler()
    lengths = {"short": 16, "long": 64, "middle": 40}
    for tenant, length in lengths.items():
        rows_for(jobs, job(numbers(length), tenant=tenant))
    assert jobs.prefix_rows == sum(lengths.values())
    for tenant, length in lengths.items():
        again = job(numbers(80), tenant=tenant)
        rows_for(jobs, again)
        assert again.reused == length


def test_a_prompt_begins_with_the_rows_of_one_that_still_runs() -> None:
    other = job([*numbers(24), 900])
    running, step = after_one_that_runs(other)
    assert other.reused == 24
    assert running.extent is not None
    assert other.extent is not None
    (move,) = step.moves
    assert (move.source, move.target, move.length) == (running.extent.start, other.extent.start, 24)


def test_a_prefix_that_is_used_as_a_whole_grows_where_it_is() -> None:
    jobs = scheduler()
    rows_for(jobs, job(numbers(32)))
    jobs.add(job(numbers(40)))
    assert not jobs.plan().moves
    assert jobs.prefix_rows == 0


def test_a_prefix_of_which_a_part_is_used_stays_for_others() -> None:
    jobs = scheduler()
    rows_for(jobs, job(numbers(64)))
    jobs.add(job([*numbers(16), *numbers(8, 500)]))
    (move,) = jobs.plan().moves
    assert move.length == 16
    assert jobs.prefix_rows == 64


def test_the_least_recently_used_prefix_goes_first() -> None:
    jobs = scheduler(capacity=90)
    for start in (0, 1000, 2000):
        rows_for(jobs, job(numbers(25, start)))
    assert jobs.prefix_rows == 72
    rows_for(jobs, job([*numbers(16), 7]))  # uses the first of them, and the second has to go
    rows_for(jobs, job(numbers(20, 3000)))
    cuts = Cuts(CHUNK, exact=True)
    known = [
        jobs._rows._prefixes.longest("acme", cuts.trace(job(numbers(25, start)), 25))[1]
        for start in (0, 1000, 2000, 3000)
    ]
    assert known == [24, 0, 24, 16]


@pytest.mark.parametrize("keeps", [True, False])
def test_prefixes_yield_before_a_running_sequence_does(keeps: bool) -> None:
    jobs = scheduler(capacity=180, keeps=keeps)
    for start in range(1000, 6000, 1000):
        rows_for(jobs, job(numbers(33, start)))
    assert jobs.prefix_rows == 160 * keeps
    first, second = job(numbers(8), more=50), job(numbers(8, 100), more=50)
    jobs.add(first)
    jobs.add(second)
    while jobs.running or jobs.waiting:
        run(jobs.plan(), jobs)
    assert jobs.preemptions == 0
    assert (first.token_count, second.token_count) == (58, 58)


def test_a_preempted_sequence_goes_on_from_its_own_rows() -> None:
    jobs = scheduler()
    asked = job(numbers(30), more=20)
    jobs.add(asked)
    while asked.token_count < 40:
        run(jobs.plan(), jobs)
    jobs.preempt(asked)
    assert asked.cached == 0
    step = jobs.plan()
    assert asked.cached == 39
    assert sum(work.rows for work in step.works.values()) == 1
    assert jobs.reused_tokens == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_sequence_is_admitted_wherever_the_rows_that_nobody_holds_suffice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs = scheduler(capacity=200, exact=bool(seed % 2))
    admitted = 0
    for _ in range(150):
        if rng.random() < 0.6 and len(jobs.running) < 4:
            asked = job(rng.integers(0, 2, int(rng.integers(1, 90))).tolist(), more=40)
            free = 200 - jobs.reserved_rows
            jobs.add(asked)
            jobs.plan()
            fits = asked.token_count + 4 <= free
            assert fits == (asked.extent is not None)
            admitted += fits
            if not fits:
                jobs.remove(asked)
        elif jobs.running:
            asked = jobs.running[int(rng.integers(len(jobs.running)))]
            asked.cached = asked.prompt
            jobs.remove(asked)
    assert admitted > 20


@pytest.mark.parametrize("exact", [True, False])
def test_nothing_leaks_and_no_row_has_two_owners_over_a_thousand_requests(exact: bool) -> None:
    rng = np.random.default_rng(1)
    jobs = scheduler(capacity=300, exact=exact)
    everyone: list[FakeJob] = []
    while len(everyone) < 1000 or jobs.running or jobs.waiting:
        if len(everyone) < 1000 and len(jobs.waiting) < 3:
            prompt = [
                *numbers(int(rng.integers(1, 60))),
                *rng.integers(0, 9, int(rng.integers(1, 9))).tolist(),
            ]
            everyone.append(job(prompt, int(rng.integers(1, 30)), tenant=str(rng.integers(3))))
            jobs.add(everyone[-1])
        if jobs.running and rng.random() < 0.1:
            victim = jobs.running[int(rng.integers(len(jobs.running)))]
            (jobs.preempt if rng.random() < 0.5 else jobs.remove)(victim)
        run(jobs.plan(), jobs)
        kept = [prefix.extent for prefix in jobs._rows._prefixes._kept]
        held = sorted((e.start, e.stop) for e in [*kept, *(j.extent for j in jobs.running if j.extent)])
        assert all(one[1] <= other[0] for one, other in pairwise(held))
        assert sum(stop - start for start, stop in held) == 300 - jobs._rows._allocator.free_rows
    assert jobs.reserved_rows == 0
    assert jobs.reused_tokens > 1000
    assert jobs.prefix_rows > 0
    for tenant in "012":
        jobs._rows.forget_prefixes(tenant)
    assert jobs._rows._allocator.take(300) == Extent(0, 300)


def test_no_mark_of_a_piece_makes_two_tokens_equal() -> None:
    """Whatever ends at a token: a chunk of the prompt, a group of the completion, both or nothing."""
    cuts, marked = Cuts(2, exact=True), []
    for token in range(10):
        for prompt, group_ends in ((2, []), (1, []), (1, [2]), (2, [2])):
            asked = FakeJob(prompt, 6, tokens=[0, token])
            asked.group_ends = group_ends
            marked.append(array("i", cuts.trace(asked, 2))[1])
    assert len(set(marked)) == 10 * 4


def test_only_as_many_prefixes_are_kept_as_can_be_looked_through() -> None:
    prefixes = Prefixes(most=2)
    traces = [Cuts(CHUNK, exact=False).trace(job(numbers(10, start)), 10) for start in (0, 50, 90)]
    freed = [prefixes.keep(Prefix("acme", trace, Extent(10 * i, 10))) for i, trace in enumerate(traces)]
    assert freed == [[], [], [Extent(0, 10)]]


def test_looking_through_hundreds_of_long_prefixes_takes_less_than_a_millisecond() -> None:
    prefixes = Prefixes()
    common = numbers(6000)
    cuts = Cuts(256, exact=True)
    for other in range(256):
        asked = job([*common, *numbers(2000, 10_000 + 3000 * other)])
        prefixes.keep(Prefix("acme", cuts.trace(asked, 8000), Extent(8000 * other, 8000)))
    own = cuts.trace(job([*common, 7]), 6001)
    fastest = 1.0
    for _ in range(20):
        started = time.thread_time()
        _, shared = prefixes.longest("acme", own)
        fastest = min(fastest, time.thread_time() - started)
    assert shared == 6000
    assert fastest < 0.001


def test_common_tokens_are_counted_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    cuts = Cuts(CHUNK, exact=False)
    for _ in range(300):
        one, other = (rng.integers(0, 3, int(rng.integers(1, 9))).tolist() for _ in range(2))
        slow = 0
        while slow < min(len(one), len(other)) and one[slow] == other[slow]:
            slow += 1
        traces = [cuts.trace(job(tokens), len(tokens)) for tokens in (one, other)]
        more_than = int(rng.integers(0, 4))
        assert common_tokens(*traces) == slow
        if one[:more_than] == other[:more_than]:
            assert common_tokens(*traces, more_than) == (slow if slow > more_than else 0)
