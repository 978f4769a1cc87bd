"""Scheduling of plain numbers: no model, no tensors."""

import inspect
import re
import sys
from types import ModuleType

import pytest

from tests.harness.fake_job import FakeJob, run
from ttmark.gen_service.engine.scheduling import (
    fair_line,
    fair_share,
    kv_cache_rows,
    reading_line,
    schedulable,
)
from ttmark.gen_service.engine.scheduling import scheduler as scheduler_module
from ttmark.gen_service.engine.scheduling.kv_cache_rows import ExtentAllocator
from ttmark.gen_service.engine.scheduling.scheduler import Scheduler


def scheduler(
    capacity: int = 1000, max_sequences: int = 4, step_rows: int = 20, chunk: int = 8
) -> Scheduler[FakeJob]:
    return Scheduler(
        ExtentAllocator(capacity), max_sequences=max_sequences, step_rows=step_rows, prefill_chunk=chunk
    )


@pytest.mark.parametrize(
    "module", [scheduler_module, kv_cache_rows, fair_line, reading_line, fair_share, schedulable]
)
def test_the_scheduler_imports_no_torch(module: ModuleType) -> None:
    imported = set(re.findall(r"^ *(?:from|import) ([\w.]+)", inspect.getsource(module), re.MULTILINE))
    names = ("kv_cache_rows", "fair_line", "fair_share", "reading_line", "schedulable")
    own = {
        f"ttmark.gen_service.engine.{name}" for name in ("errors", *(f"scheduling.{one}" for one in names))
    }
    assert {name for name in imported - own if name.split(".")[0] not in sys.stdlib_module_names} == set()


def test_prompts_are_cut_at_multiples_of_the_chunk() -> None:
    jobs = scheduler()
    job = FakeJob(19, 22)
    jobs.add(job)
    cuts = []
    while jobs.running or jobs.waiting:
        step = jobs.plan()
        cuts += [(job.cached, work.cached) for work in step.works.values() if job.cached < job.prompt]
        run(step, jobs)
    assert cuts == [(0, 8), (8, 16), (16, 19)]


def test_work_larger_than_a_pass_is_done_alone() -> None:
    jobs = scheduler(step_rows=20)
    small, large = FakeJob(4, 9), FakeJob(4, 9, probe_rows=50)
    jobs.add(large)
    jobs.add(small)
    assert list(jobs.plan().works) == [large]
    assert list(jobs.plan().works) == [small]


def test_more_sequences_than_places_wait_in_order() -> None:
    jobs = scheduler(max_sequences=2)
    first, second, third = (FakeJob(3, 5) for _ in range(3))
    for job in (first, second, third):
        jobs.add(job)
    jobs.plan()
    assert jobs.running == [first, second]
    jobs.remove(first)
    jobs.plan()
    assert jobs.running == [second, third]


def test_removing_a_sequence_twice_or_while_it_waits_does_no_harm() -> None:
    jobs = scheduler(max_sequences=1)
    running, waiting = FakeJob(3, 5), FakeJob(3, 5)
    jobs.add(running)
    jobs.add(waiting)
    jobs.plan()
    for job in (waiting, running, running):
        jobs.remove(job)
    assert not jobs.running
    assert not jobs.waiting
    assert jobs.reserved_rows == 0


def test_a_preempted_sequence_waits_before_those_that_came_later() -> None:
    jobs = scheduler(max_sequences=2)
    first, second, third = (FakeJob(3, 5) for _ in range(3))
    for job in (first, second, third):
        jobs.add(job)
    jobs.plan()
    jobs.preempt(second)
    assert list(jobs.waiting) == [second, third]
