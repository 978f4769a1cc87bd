"""What every store of detection jobs has to do, run against each of them on the real thing."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest

from ttmark.detect_service.features.jobs.job_store import (
    Claim,
    JobRecord,
    NoRoom,
    PartAnswer,
    StoreLimits,
    room,
)
from ttmark.detect_service.features.jobs.sealed_jobs import JobStore
from ttmark.detect_service.features.jobs.service import open_job_store
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable

LIMITS = StoreLimits(jobs=3, tenant_size=5_000_000, size=10_000_000)
LEASE_SECONDS = 0.3
NEVER = 4e9


@pytest.fixture
async def jobs(opened: Any) -> JobStore:
    return opened(open_job_store, lease_seconds=LEASE_SECONDS)


@pytest.fixture
async def other(opened: Any) -> JobStore:
    """Leases of it never run out."""
    return opened(open_job_store, lease_seconds=1_000)


def job(job_id: str = "j1", tenant: str = "a", parts: int = 3) -> JobRecord:
    return JobRecord(job_id, tenant, b"\x00head\xff", documents=2 * parts, parts=parts, expires_at=NEVER)


def contents(count: int = 3) -> list[bytes]:
    return [bytes([number]) * 100 for number in range(count)]


def answer(results: bytes = b"r", failed: int = 0, *, calls: bool = False) -> PartAnswer:
    return PartAnswer(results, answered=2, failed=failed, now=7.0, expires_at=NEVER + 1, calls=calls)


async def make(store: JobStore, *made: JobRecord, limits: StoreLimits = LIMITS) -> None:
    for one in made:
        await store.create(one, contents(one.parts), limits)


async def drained(store: JobStore, worker: str = "w") -> list[tuple[str, int]]:
    """Answers all that can be claimed: job and part of each, in order."""
    done = []
    while (claim := await store.claim(worker)) is not None:
        assert await store.answer(claim, answer(b"%d" % claim.part))
        done.append((claim.job.job_id, claim.part))
    return done


async def claimed(store: JobStore, worker: str = "w") -> Claim:
    claim = await store.claim(worker)
    assert claim is not None
    return claim


async def test_a_job_is_kept_for_its_tenant_and_for_nobody_else(jobs: JobStore, other: JobStore) -> None:
    await make(jobs, job())
    assert await other.get("a", "j1") == job()
    assert await other.get("b", "j1") is None
    assert await other.get("a", "j2") is None
    assert await jobs.waiting() == 6


async def test_repeating_a_creation_changes_nothing(jobs: JobStore) -> None:
    await make(jobs, job())
    await jobs.create(replace(job(), head=b"another"), [b"others"] * 3, LIMITS)
    assert await jobs.waiting() == 6
    claim = await claimed(jobs)
    assert (claim.job, claim.documents) == (job(), contents()[0])
    await jobs.release(claim)
    assert [part for _, part in await drained(jobs)] == [0, 1, 2]
    await make(jobs, job())
    assert await jobs.claim("w") is None


async def test_of_creations_at_once_under_one_id_one_is_kept_whole(jobs: JobStore, other: JobStore) -> None:
    limits = StoreLimits(jobs=1, tenant_size=1_000_000, size=2_000_000)

    def create(store: JobStore, number: int) -> Awaitable[None]:
        head = b"%d" % number
        return store.create(replace(job(), head=head), [head * 400_000] * 2 + [head], limits)

    ends = await asyncio.gather(
        *(create(store, number) for number, store in enumerate((jobs, other) * 4)), return_exceptions=True
    )
    assert {type(end) for end in ends} <= {type(None), StoreUnavailable}
    assert None in ends
    claims = [await claimed(other) for _ in range(3)]
    assert len({claim.job.head for claim in claims}) == 1
    assert [claim.documents[:1] for claim in claims] == [claims[0].job.head] * 3
    assert await other.claim("w") is None
    assert await jobs.waiting() == 6
    await jobs.delete("a", "j1")
    left = 1_000_000 - room(6, 0)
    await jobs.create(job(), [b"x" * (left - 1), b"x"], limits)  # into all of the room, which was given back


async def test_parts_come_with_their_documents_and_each_goes_to_one_worker(jobs, other):
    await make(jobs, job())
    first, second, third = await claimed(other, "w1"), await claimed(other, "w2"), await claimed(other, "w1")
    assert [claim.part for claim in (first, second, third)] == [0, 1, 2]
    assert [claim.documents for claim in (first, second, third)] == contents()
    assert {claim.attempt for claim in (first, second, third)} == {1}
    assert await other.claim("w3") is None


async def test_an_answer_replaces_the_documents_and_the_last_one_finishes_the_job(jobs: JobStore) -> None:
    await make(jobs, job())
    for part in range(3):
        assert (await jobs.get("a", "j1") or job()).finished_at is None
        assert await jobs.results("j1", 0, 3) == [b"r"] * part + [None] * (3 - part)
        assert await jobs.answer(await claimed(jobs), answer(failed=part))
    done = replace(job(), answered=6, failed=3, finished_at=7.0, expires_at=NEVER + 1)
    assert await jobs.get("a", "j1") == done
    assert await jobs.claim("w") is None
    assert await jobs.waiting() == 0


async def test_a_part_whose_worker_is_silent_goes_to_another_one_and_is_answered_once(jobs: JobStore) -> None:
    await make(jobs, job(parts=2))
    first = await claimed(jobs, "dead")
    assert await jobs.answer(first, answer())
    assert not await jobs.answer(first, answer(b"second", failed=2))
    lost = await claimed(jobs, "dead")
    assert await jobs.claim("w") is None
    await asyncio.sleep(2 * LEASE_SECONDS)
    again = await claimed(jobs, "w")
    assert (again.part, again.documents, again.attempt) == (1, lost.documents, 2)
    assert not await jobs.renew(lost)
    assert await jobs.answer(lost, answer(b"late"))  # not dead, only slow: either answer is right
    assert not await jobs.answer(again, answer(b"later"))
    assert await jobs.results("j1", 0, 2) == [b"r", b"late"]
    done = await jobs.get("a", "j1")
    assert done is not None
    assert (done.answered, done.failed, await jobs.waiting()) == (4, 0, 0)


async def test_a_renewed_part_stays_with_its_worker(jobs: JobStore) -> None:
    await make(jobs, job(parts=1))
    claim = await claimed(jobs)
    for _ in range(4):
        await asyncio.sleep(LEASE_SECONDS / 2)
        assert await jobs.renew(claim)
        assert await jobs.claim("other") is None


async def test_a_released_part_is_as_new_and_one_whose_worker_died_is_not(jobs: JobStore) -> None:
    await make(jobs, job(parts=1))
    for worker in ("w1", "w2", "w3"):
        claim = await claimed(jobs, worker)
        assert claim.attempt == 1
        await jobs.release(claim)
        await jobs.release(claim)  # says nothing new
    dead = await claimed(jobs, "dead")
    await asyncio.sleep(2 * LEASE_SECONDS)
    again = await claimed(jobs, "w")
    assert (dead.attempt, again.attempt) == (1, 2)
    await jobs.release(dead)  # is another worker's by now
    assert await jobs.claim("v") is None
    await jobs.release(again)
    assert not await jobs.renew(again)
    assert (await claimed(jobs, "v")).attempt == 2


async def test_tenants_that_are_passed_over_hold_up_no_other(jobs: JobStore) -> None:
    await make(jobs, job("j1", "a"), job("j2", "b", parts=1))
    first = await claimed(jobs)
    assert first.job.tenant == "a"
    second = await jobs.claim("w", ["a"])
    assert second is not None
    assert second.job.tenant == "b"
    assert await jobs.claim("w", {"a", "b"}) is None
    assert await jobs.claim("w", ["b"]) is not None


async def test_tenants_take_turns_whoever_came_first(jobs: JobStore) -> None:
    await make(jobs, job("j1", "a"), job("j2", "a"), job("j3", "b", parts=2))
    order = [name for name, _ in await drained(jobs)]
    assert order[:4].count("j3") == 2
    assert order[4:] == ["j1", "j2", "j2", "j2"]


async def test_a_deleted_job_is_gone_with_all_that_is_of_it(jobs: JobStore) -> None:
    await make(jobs, job("j1"), job("j2", parts=1))
    claim = await claimed(jobs)
    assert not await jobs.delete("b", "j1")
    assert await jobs.delete("a", "j1")
    assert not await jobs.delete("a", "j1")
    assert await jobs.get("a", "j1") is None
    assert not await jobs.renew(claim)
    assert not await jobs.answer(claim, answer())
    assert [one for one in await jobs.results("j1", 0, 3) if one] == []
    assert await drained(jobs) == [("j2", 0)]
    assert await jobs.waiting() == 0


async def test_jobs_end_when_their_time_has_come(jobs: JobStore) -> None:
    await make(jobs, replace(job("j1"), expires_at=100.0), job("j2"))
    assert await jobs.expire(99.0) == 0
    assert await jobs.expire(100.0) == 1
    assert await jobs.get("a", "j1") is None
    assert await jobs.get("a", "j2") == job("j2")
    assert {name for name, _ in await drained(jobs)} == {"j2"}
    assert await jobs.expire(NEVER) == 0  # kept longer since it is finished
    assert await jobs.expire(NEVER + 1) == 1


async def test_a_tenant_has_so_many_jobs_and_another_one_its_own(jobs: JobStore) -> None:
    await make(jobs, job("j1"), job("j2"), job("j3"))
    with pytest.raises(NoRoom, match="jobs"):
        await make(jobs, job("j4"))
    await make(jobs, job("j5", "b"))
    assert await jobs.get("a", "j4") is None
    await jobs.delete("a", "j2")
    await make(jobs, job("j4"))


async def test_what_a_tenant_holds_is_limited_and_given_back(jobs: JobStore) -> None:
    one = room(6, 300)
    limits = StoreLimits(jobs=9, tenant_size=2 * one, size=100 * one)
    await make(jobs, job("j1"), job("j2"), limits=limits)
    with pytest.raises(NoRoom, match="tenant"):
        await make(jobs, job("j3"), limits=limits)
    await make(jobs, job("j4", "b"), job("j5", "b"), limits=limits)
    while (claim := await jobs.claim("w")) is not None:
        assert await jobs.answer(claim, answer(b"x" * (one // 3)))
    with pytest.raises(NoRoom, match="tenant"):
        await make(jobs, job("j3"), limits=limits)
    await jobs.delete("a", "j1")
    await make(jobs, job("j3"), limits=limits)
    await jobs.delete("a", "j3")
    assert await jobs.expire(NEVER + 1) == 3
    await make(jobs, job("j1"), job("j2"), limits=limits)
    with pytest.raises(NoRoom, match="tenant"):
        await make(jobs, job("j3"), limits=limits)


async def test_small_results_leave_room_and_large_ones_take_it(jobs: JobStore) -> None:
    one = room(2, 100)
    limits = StoreLimits(jobs=9, tenant_size=2 * one, size=100 * one)
    await make(jobs, job("j1", parts=1), job("j2", parts=1), limits=limits)
    assert await jobs.answer(await claimed(jobs), answer(b""))
    await make(jobs, job("j3", parts=1), limits=limits)
    assert await jobs.answer(await claimed(jobs), answer(b"x" * 3 * one))
    assert await jobs.answer(await claimed(jobs), answer(b""))
    with pytest.raises(NoRoom, match="tenant"):
        await make(jobs, job("j4", parts=1), limits=limits)


async def test_tenants_that_take_all_they_can_leave_room_for_the_next_one(jobs: JobStore) -> None:
    one = room(2, 100)
    limits = StoreLimits(jobs=99, tenant_size=16 * one, size=32 * one)
    made = {}
    for tenant in "abcde":
        full = None
        for number in range(99):
            try:
                await make(jobs, job(f"{tenant}{number}", tenant, parts=1), limits=limits)
            except NoRoom as error:
                full = error.limit
                break
        made[tenant] = (number, full)
    assert made.pop("a") == (16, "tenant")
    assert made == {tenant: (number, "bytes") for tenant, number in zip("bcde", (8, 4, 2, 1), strict=True)}
    await jobs.delete("a", "a0")
    await make(jobs, job("f0", "f", parts=1), limits=limits)


async def test_a_call_is_due_when_the_job_is_finished_and_again_after_growing_pauses(jobs, other):
    await make(jobs, job("j1", parts=2), job("j2", parts=1))
    first = await claimed(jobs)
    await jobs.answer(first, answer(calls=True))
    assert await jobs.next_call(8.0, pause_seconds=10) is None
    while (claim := await jobs.claim("w")) is not None:
        await jobs.answer(claim, answer(calls=claim.job.job_id == "j1"))
    for attempt, now in enumerate((8.0, 18.0, 38.0), 1):
        due = await jobs.next_call(now, pause_seconds=10)
        assert due is not None
        assert (due.job.job_id, due.attempt) == ("j1", attempt)
        later = now + 10 * 2 ** (attempt - 1)
        assert await other.next_call(later - 0.5, pause_seconds=10) is None
    await jobs.called("j1")
    assert await jobs.next_call(1e9, pause_seconds=10) is None


async def test_calls_of_tenants_that_are_passed_over_stay_due(jobs: JobStore) -> None:
    await make(jobs, job("j1", parts=1), job("j2", parts=1), job("j3", "b", parts=1))
    while (claim := await jobs.claim("w")) is not None:
        await jobs.answer(claim, answer(calls=True))
    due = await jobs.next_call(8.0, pause_seconds=10, besides=["a"])
    assert due is not None
    assert (due.job.job_id, due.attempt) == ("j3", 1)
    assert await jobs.next_call(8.0, pause_seconds=10, besides=["a"]) is None
    assert await jobs.next_call(8.0, pause_seconds=10, besides=["b"]) is not None


async def test_many_workers_answer_each_part_once(jobs: JobStore, other: JobStore) -> None:
    await make(jobs, job("j1", parts=40), job("j2", "b", parts=40))
    done = await asyncio.gather(
        *(drained(store, f"w{number}") for number, store in enumerate((other, other, other, other)))
    )
    parts = [part for some in done for part in some]
    assert sorted(parts) == sorted((name, part) for name in ("j1", "j2") for part in range(40))
