"""Detection jobs in Redis: a stream of parts for each tenant, read by one consumer group of all replicas.

`{ttmark}:job:<id>` is the job's record, beside it `:documents` and `:results`, by part. `{ttmark}:jobs:*` are
the tenants with the time at which each was served, their streams, when jobs expire, when calls are due, and
sums: bytes, also of each tenant, and documents. Nothing of this expires by itself: Redis would evict it when
its memory is full. Changes are functions of `redis_jobs.lua`: each happens as a whole or not at all.
"""

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, cast

from ttmark.detect_service.features.jobs.idempotency.idempotency_store import RedisKeys, RequestKeys
from ttmark.detect_service.features.jobs.job_store import (
    RESULT_BYTES,
    Claim,
    DueCall,
    JobRecord,
    Limit,
    NoRoom,
    PartAnswer,
    StoreLimits,
    room,
)
from ttmark.shared.batches import batches
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable
from ttmark.shared.vault.stores.redis_client import RedisClient, script_command
from ttmark.shared.vault.stores.redis_connections import HASH_TAG

_LUA = Path(__file__).with_suffix(".lua")
_JOBS = f"{HASH_TAG}:jobs"
_TENANTS, _EXPIRY, _CALLS = f"{_JOBS}:tenants", f"{_JOBS}:expiry", f"{_JOBS}:calls"
_BYTES, _WAITING = f"{_JOBS}:bytes", f"{_JOBS}:waiting"
_BYTES_IN_A_COMMAND = 2**20
# How long a job may take to be written before what there is of it is forgotten.
_WRITING_SECONDS = 300.0
_REFUSALS: dict[bytes, Limit] = {b"jobs": "jobs", b"tenant": "tenant", b"bytes": "bytes"}


class RedisJobs:
    def __init__(self, client: RedisClient, *, lease_seconds: float) -> None:
        self.lease_seconds = lease_seconds
        self._redis = client
        self.keys: RequestKeys = RedisKeys(self._redis, _JOBS)

    async def create(self, job: JobRecord, parts: Sequence[bytes], limits: StoreLimits) -> None:
        """Reserves the room, writes the parts, then lets workers see them."""
        size = room(job.documents, sum(map(len, parts)))
        name, documents = _job(job.job_id), f"{_job(job.job_id)}:documents"
        names = [name, _of(job.tenant), _EXPIRY, _BYTES, documents, _bytes_of(job.tenant)]
        values: list[str | bytes | int] = [job.job_id, job.tenant, job.head, job.documents, job.parts]
        forgotten_at = str(time.time() + _WRITING_SECONDS)
        values += [size, RESULT_BYTES, limits.jobs, limits.tenant_size, limits.size, forgotten_at]
        answer = await self._run("reserve", names, *values)
        if answer in _REFUSALS:
            raise NoRoom(_REFUSALS[answer])
        if answer is None:
            for some in batches(enumerate(parts), lambda part: len(part[1]), _BYTES_IN_A_COMMAND):
                numbered: list[str | bytes | int] = []
                for number, part in some:
                    numbered += [number, part]
                await self._run("write", [name, documents], job.head, *numbered)
        names = [name, _stream(job.tenant), _TENANTS, _EXPIRY, _WAITING]
        start = script_command(_LUA, "start", names, job.job_id, job.tenant, str(job.expires_at), job.head)
        if not await self._redis.confirmed(start):
            raise StoreUnavailable("the job was written by another request meanwhile, or too slowly")

    async def get(self, tenant: str, job_id: str) -> JobRecord | None:
        job = await self._record(job_id)
        return job if job is not None and job.tenant == tenant else None

    async def claim(self, worker: str, besides: Collection[str] = ()) -> Claim | None:
        lease = int(1000 * self.lease_seconds)
        for tenant in await self._redis.ask(("ZRANGE", _TENANTS, 0, -1)):
            names = [_stream(tenant.decode()), _TENANTS]
            while tenant.decode() not in besides:
                taken = await self._run("claim", names, worker, lease, tenant, str(time.time()))
                if taken is None:
                    break
                entry, job_id, part, attempts = taken
                claim = await self._opened(entry, job_id.decode(), int(part), attempts, worker)
                if claim is not None:
                    return claim
                # Of a job that is gone.
                await self._run("drop", names, entry, tenant)
        return None

    async def _opened(self, entry: bytes, job_id: str, part: int, attempts: int, worker: str) -> Claim | None:
        job = await self._record(job_id)
        documents = await self._redis.ask(("HGET", _job(job_id) + ":documents", str(part)))
        if job is None or documents is None:
            return None
        return Claim(job, part, documents, attempts, f"{worker} {entry.decode()}")

    async def renew(self, claim: Claim) -> bool:
        return await self._lease(claim, "renew")

    async def release(self, claim: Claim) -> None:
        await self._lease(claim, "release")

    async def _lease(self, claim: Claim, function: str) -> bool:
        names = [_stream(claim.job.tenant), _job(claim.job.job_id)]
        return bool(await self._run(function, names, *claim.handle.split(" ")))

    async def answer(self, claim: Claim, answer: PartAnswer) -> bool:
        job, entry = _job(claim.job.job_id), claim.handle.split(" ")[1]
        names = [job, f"{job}:documents", f"{job}:results", _stream(claim.job.tenant), _TENANTS, _EXPIRY]
        names += [_BYTES, _WAITING, _CALLS, _bytes_of(claim.job.tenant)]
        values: list[str | bytes | int] = [claim.part, entry, answer.results, answer.answered, answer.failed]
        values += [str(answer.now), str(answer.expires_at), int(answer.calls)]
        values += [claim.job.job_id, claim.job.tenant]
        return bool(await self._run("answer", names, *values))

    async def results(self, job_id: str, first: int, count: int) -> list[bytes | None]:
        names = [str(part) for part in range(first, first + count)]
        found = await self._redis.ask(("HMGET", _job(job_id) + ":results", *names)) if names else []
        return cast(list[bytes | None], found)

    async def delete(self, tenant: str, job_id: str) -> bool:
        if await self.get(tenant, job_id) is None:
            return False
        return await self._forget(tenant, job_id)

    async def expire(self, now: float) -> int:
        due = await self._redis.ask(("ZRANGEBYSCORE", _EXPIRY, "-inf", str(now)))
        forgotten = 0
        for job_id in due:
            tenant = await self._redis.ask(("HGET", _job(job_id.decode()), "tenant"))
            forgotten += await self._forget((tenant or b"").decode(), job_id.decode())
        return forgotten

    async def _forget(self, tenant: str, job_id: str) -> bool:
        job = _job(job_id)
        names = [job, f"{job}:documents", f"{job}:results", _of(tenant), _EXPIRY, _CALLS, _BYTES, _WAITING]
        names += [_bytes_of(tenant)]
        return bool(await self._redis.confirmed(script_command(_LUA, "forget", names, job_id)))

    async def next_call(
        self, now: float, *, pause_seconds: float, besides: Collection[str] = ()
    ) -> DueCall | None:
        for name in await self._redis.ask(("ZRANGEBYSCORE", _CALLS, "-inf", str(now))):
            job_id = name.decode()
            job = await self._record(job_id)
            if job is None or job.tenant in besides:
                continue
            names = [_CALLS, _job(job_id)]
            if attempt := await self._run("call", names, job_id, str(now), str(pause_seconds)):
                return DueCall(job, attempt)
        return None

    async def called(self, job_id: str) -> None:
        await self._redis.ask(("ZREM", _CALLS, job_id))

    async def waiting(self) -> int:
        return int(await self._redis.ask(("GET", _WAITING)) or 0)

    async def close(self) -> None:
        await self._redis.close()

    async def _run(self, function: str, names: list[str], *values: str | bytes | int) -> Any:
        return await self._redis.ask(script_command(_LUA, function, names, *values))

    async def _record(self, job_id: str) -> JobRecord | None:
        names = ("tenant", "head", "documents", "parts", "expires_at", "answered", "failed", "finished_at")
        tenant, head, *numbers = await self._redis.ask(("HMGET", _job(job_id), *names))
        documents, parts, expires_at, answered, failed, finished_at = numbers
        if expires_at is None:  # not there, or not wholly written
            return None
        return JobRecord(
            job_id,
            tenant.decode(),
            head,
            int(documents),
            int(parts),
            float(expires_at),
            int(answered),
            int(failed),
            None if finished_at is None else float(finished_at),
        )


def _job(job_id: str) -> str:
    return f"{HASH_TAG}:job:{job_id}"


def _of(tenant: str) -> str:
    return f"{_JOBS}:of:{tenant}"


def _bytes_of(tenant: str) -> str:
    return f"{_JOBS}:bytes:{tenant}"


def _stream(tenant: str) -> str:
    return f"{_JOBS}:parts:{tenant}"
