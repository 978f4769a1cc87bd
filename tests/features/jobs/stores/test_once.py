"""Idempotency keys over both stores of jobs: whatever comes between its steps, a request is done once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from ttmark.detect_service.features.jobs.idempotency import idempotency_store
from ttmark.detect_service.features.jobs.idempotency.idempotency import BUSY_SECONDS, KEEP_SECONDS, Once
from ttmark.detect_service.features.jobs.job_store import JobRecord, StoreLimits
from ttmark.detect_service.features.jobs.sealed_jobs import JobStore
from ttmark.detect_service.features.jobs.service import open_job_store
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import IdempotencyKeyReused, RequestInProgress, TooManyRequests
from ttmark.shared.schemas.detection.jobs import JobStatus
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import RecordTampered, StoreUnavailable

KEK = KeyEncryptionKey(bytes(32))
MINE = Principal("t1", "a", frozenset())
LIMITS = StoreLimits(jobs=9, tenant_size=5_000_000, size=10_000_000)


@dataclass
class Replica:
    """A process that makes jobs: its store, its clock, and what it was charged and made."""

    store: JobStore
    time: float = 1_000.0
    charged: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    numbers: int = 0

    async def ask(
        self,
        key: str = "k",
        body: str = "body",
        caller: Principal = MINE,
        *,
        charging: Callable[[], Awaitable[None]] | None = None,
        making: Callable[[], Awaitable[None]] | None = None,
        made: Callable[[], Awaitable[None]] | None = None,
    ) -> JobStatus:
        """A request; what is given happens while it is charged, before its job is made, and after."""
        self.numbers += 1
        fresh = status(f"{id(self):x}-{self.numbers}", self.time)

        async def charge() -> None:
            if charging is not None:
                await charging()
            self.charged.append(fresh.id)

        async def make(answer: JobStatus) -> None:
            if making is not None:
                await making()
            job = JobRecord(answer.id, caller.tenant, fresh.id.encode(), 2, 2, 4e9)
            await self.store.create(job, [fresh.id.encode(), b"more"], LIMITS)
            self.made.append(answer.id)
            if made is not None:
                await made()

        async def is_there(job_id: str) -> bool:
            return await self.store.get(caller.tenant, job_id) is not None

        once = Once(self.store.keys, KEK, caller, key, now=lambda: self.time)
        return await once.answer(body, fresh, charge, make, is_there)


def status(job_id: str, now: float) -> JobStatus:
    counts = {"documents": 2, "answered": 0, "failed": 0}
    times = {"created_at": now, "expires_at": now + 60}
    return JobStatus.model_validate({"id": job_id, "status": "queued", "mode": "direct"} | counts | times)


@pytest.fixture
async def replica(opened: Any) -> Replica:
    return Replica(opened(open_job_store, lease_seconds=30))


@pytest.fixture
async def other(opened: Any) -> Replica:
    return Replica(opened(open_job_store, lease_seconds=30))


async def jobs_in(replica: Replica) -> set[str]:
    """All jobs that a worker is given; each part is as one request wrote it, whole."""
    found = set[str]()
    while (claim := await replica.store.claim("w")) is not None:
        if claim.part == 0:
            assert claim.documents == claim.job.head
        found.add(claim.job.job_id)
    return found


class Crash(BaseException):
    """The process has ended: nothing is tidied up."""


async def crash(replica: Replica) -> None:
    """From now on nothing that the replica does reaches the keys."""

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("the process has ended")

    replica.store.keys.put = replica.store.keys.remove = away  # type: ignore[method-assign, assignment]
    raise Crash


async def test_another_body_is_refused_before_and_after_its_lease(replica: Replica) -> None:
    await replica.ask()
    for replica.time in (1_001.0, 2_000.0):
        with pytest.raises(IdempotencyKeyReused):
            await replica.ask(body="another")
    with pytest.raises(TooManyRequests):
        await replica.ask("k2", making=refuse)
    with pytest.raises(IdempotencyKeyReused):
        await replica.ask("k2", body="another")
    assert len(replica.made) == 1


async def test_keys_belong_to_one_token_of_one_tenant(replica: Replica) -> None:
    callers = [MINE, Principal("t2", "a", frozenset()), Principal("t1", "b", frozenset())]
    answers = [await replica.ask(caller=caller, body=caller.token_id) for caller in callers]
    assert len({answer.id for answer in answers}) == 3


async def refuse() -> None:
    raise TooManyRequests("no more", retry_after=1)


async def test_who_is_refused_may_ask_again_and_who_was_charged_is_not_charged_again(replica, other):
    with pytest.raises(TooManyRequests):
        await replica.ask(charging=refuse)
    assert replica.charged == []
    with pytest.raises(TooManyRequests):
        await replica.ask(body="changed, since the key is as new", making=refuse)
    assert len(replica.charged) == 1
    answer = await other.ask(body="changed, since the key is as new")
    assert other.charged == []
    assert await jobs_in(other) == {answer.id}


async def test_of_many_at_once_one_is_done(replica: Replica, other: Replica) -> None:
    asked = [one.ask() for _ in range(20) for one in (replica, other)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    made = {answer.id for answer in answers if isinstance(answer, JobStatus)}
    assert {type(answer) for answer in answers} <= {JobStatus, RequestInProgress}
    assert await jobs_in(other) == made
    assert len(made) == len(replica.charged + other.charged) == 1


@pytest.mark.parametrize(("step", "charges"), [("charging", 1), ("making", 0), ("made", 0)])
async def test_another_replica_goes_on_where_one_has_ended(replica, other, step, charges):
    end: dict[str, Callable[[], Awaitable[None]]] = {step: lambda: crash(replica)}
    with pytest.raises(Crash):
        await replica.ask(**end)  # type: ignore[arg-type]
    with pytest.raises(RequestInProgress):
        await other.ask()
    other.time += BUSY_SECONDS + 0.1
    answer = await other.ask()
    assert len(other.charged) == charges
    assert await jobs_in(other) == {answer.id}
    assert set(replica.made) <= {answer.id}
    assert await other.ask() == answer


@pytest.mark.parametrize("step", ["charging", "making", "made"])
async def test_a_slow_request_and_who_takes_its_place_make_one_job(replica, other, step):
    other.time += BUSY_SECONDS + 0.1
    answers: list[JobStatus] = []

    async def overtaken() -> None:
        answers.append(await other.ask())

    with pytest.raises(RequestInProgress):
        await replica.ask(**{step: overtaken})  # type: ignore[arg-type]
    assert await jobs_in(other) == {answers[0].id}
    assert await replica.ask() == answers[0]


async def test_a_store_that_may_have_made_the_job_is_asked_for_the_same_one(replica, other):
    async def lost() -> None:
        raise StoreUnavailable("no reply")

    with pytest.raises(StoreUnavailable):
        await replica.ask(made=lost)
    answer = await other.ask()
    assert await jobs_in(other) == {answer.id} == set(replica.made)
    assert other.charged == []


async def test_a_key_is_as_new_when_its_time_is_over(replica: Replica) -> None:
    first = await replica.ask()
    replica.time += KEEP_SECONDS - 1
    assert await replica.ask() == first
    replica.time += 2
    second = await replica.ask(body="another")
    assert second.id != first.id
    await replica.store.keys.expire(replica.time + KEEP_SECONDS - 1)
    assert await replica.ask(body="another") == second
    await replica.store.keys.expire(replica.time + KEEP_SECONDS)
    assert (await replica.ask()).id not in (first.id, second.id)


async def test_a_flood_of_keys_forgets_the_tenant_s_oldest_and_nobody_else_s(replica, other, monkeypatch):
    monkeypatch.setattr(idempotency_store, "MOST_KEYS", 3)
    stranger = Principal("t9", "b", frozenset())
    theirs = await other.ask(caller=stranger)
    first = [await ask_at(replica, number) for number in range(6)]
    assert [await ask_at(replica, number) for number in (3, 4, 5)] == first[3:]
    assert (await ask_at(replica, 2)).id != first[2].id
    assert await other.ask(caller=stranger) == theirs


async def ask_at(replica: Replica, number: int) -> JobStatus:
    replica.time += 1
    return await replica.ask(f"k{number}")


async def test_the_store_sees_neither_keys_nor_bodies_and_no_entry_is_moved(replica: Replica) -> None:
    seen = dict[str, bytes]()
    put = replica.store.keys.put

    async def spy(tenant: str, name: str, entry: bytes, *, was: bytes | None, until: float) -> bool:
        seen[name] = entry
        return await put(tenant, name, entry, was=was, until=until)

    replica.store.keys.put = spy  # type: ignore[method-assign]
    await replica.ask("order 7", body="a fingerprint")
    await replica.ask("order 8", body="a fingerprint")
    (first, entry), (second, was) = seen.items()
    assert not any(word in entry + first.encode() for word in (b"order", b"fingerprint", b"queued"))
    assert await put("a", second, entry, was=was, until=4e9)
    with pytest.raises(RecordTampered):
        await replica.ask("order 8", body="a fingerprint")
