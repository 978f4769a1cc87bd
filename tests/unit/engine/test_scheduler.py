"""Scheduling of plain numbers: no model, no tensors."""

import ast
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from gen_service.engine import scheduler as scheduler_module
from gen_service.engine.extents import Extent, ExtentAllocator
from gen_service.engine.piece import Piece
from gen_service.engine.scheduler import Pass, Scheduler


@dataclass(eq=False)
class FakeJob:
    """A sequence that samples one token per pass until it has `token_limit`."""

    prompt: int
    token_limit: int
    token_count: int = 0
    probe_rows: int = 0
    extent: Extent | None = None
    cached: int = 0
    forgotten: int = field(default=0)

    def __post_init__(self) -> None:
        self.token_count = self.prompt

    def pending_pieces(self, chunk: int, limit: int) -> list[Piece]:
        if self.cached < self.prompt:
            return [Piece(self.cached, min(self.prompt, self.cached + chunk), is_chunk=True)]
        return [Piece(self.cached, self.token_count, is_chunk=False)]

    def forget_cache(self) -> None:
        self.extent, self.cached = None, 0
        self.forgotten += 1


def scheduler(
    capacity: int = 1000, max_sequences: int = 4, step_rows: int = 20, chunk: int = 8
) -> Scheduler[FakeJob]:
    return Scheduler(
        ExtentAllocator(capacity), max_sequences=max_sequences, step_rows=step_rows, prefill_chunk=chunk
    )


def run(step: Pass[FakeJob], on: Scheduler[FakeJob]) -> None:
    for work in step.works:
        job = work.sequence
        assert job.extent is not None
        if work.pieces:
            job.cached = work.pieces[-1].stop
            assert job.cached <= job.extent.length
        if job.cached == job.token_count:
            job.token_count += 1
        if job.token_count == job.token_limit:
            on.remove(job)


def test_the_scheduler_imports_no_torch() -> None:
    source = Path(scheduler_module.__file__).read_text(encoding="utf-8")
    imported = {
        name
        for node in ast.walk(ast.parse(source))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= {
        "collections",
        "dataclasses",
        "typing",
        "gen_service.engine.extents",
        "gen_service.engine.piece",
    }


def test_prompts_are_cut_at_multiples_of_the_chunk() -> None:
    jobs = scheduler()
    job = FakeJob(19, 22)
    jobs.add(job)
    cuts = []
    while jobs.running or jobs.waiting:
        step = jobs.plan()
        cuts += [(piece.start, piece.stop) for work in step.works for piece in work.pieces if piece.is_chunk]
        run(step, jobs)
    assert cuts == [(0, 8), (8, 16), (16, 19)]


def test_a_pass_stays_within_its_rows_and_nobody_starves() -> None:
    jobs = scheduler(max_sequences=8)
    everyone = [FakeJob(30, 34) for _ in range(8)]
    for job in everyone:
        jobs.add(job)
    waited = dict.fromkeys(map(id, everyone), 0)
    while jobs.running or jobs.waiting:
        step = jobs.plan()
        assert sum(work.rows for work in step.works) <= 20
        served = {id(work.sequence) for work in step.works}
        for job in jobs.running:
            waited[id(job)] = 0 if id(job) in served else waited[id(job)] + 1
            assert waited[id(job)] <= 4
        run(step, jobs)
    assert all(job.token_count == 34 for job in everyone)


def test_work_larger_than_a_pass_is_done_alone() -> None:
    jobs = scheduler(step_rows=20)
    small, large = FakeJob(4, 9), FakeJob(4, 9, probe_rows=50)
    jobs.add(large)
    jobs.add(small)
    assert [work.sequence for work in jobs.plan().works] == [large]
    assert [work.sequence for work in jobs.plan().works] == [small]


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


@pytest.mark.parametrize("capacity", [600, 700, 1000])
def test_a_full_cache_preempts_the_youngest_and_everyone_finishes(capacity: int) -> None:
    jobs = scheduler(capacity=capacity, max_sequences=4, step_rows=100, chunk=50)
    everyone = [FakeJob(20, 590) for _ in range(4)]
    for job in everyone:
        jobs.add(job)
    passes = 0
    while jobs.running or jobs.waiting:
        run(jobs.plan(), jobs)
        extents = sorted((job.extent.start, job.extent.stop) for job in jobs.running if job.extent)
        assert all(a[1] <= b[0] for a, b in pairwise(extents))
        passes += 1
        assert passes < 20_000
    assert jobs.preemptions > 0
    assert all(job.token_count == 590 for job in everyone)
    assert everyone[0].forgotten == 1
    assert jobs.reserved_rows == 0


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
