"""Detection jobs in Redis: a stream of parts for each tenant, read by one consumer group of all replicas.

`{ttmark}:job:<id>` is the job's record, beside it `:documents` and `:results`, by part. `{ttmark}:jobs:*` are
the tenants with the time at which each was served, their streams, when jobs expire, when calls are due, and
sums: bytes, also of each tenant, and documents. Nothing of this expires by itself: Redis would evict it when
its memory is full. Changes are scripts: each happens as a whole or not at all.
"""

import time
from collections.abc import Collection, Sequence
from typing import cast

from ttmark.detect_service.idempotency.idempotency_store import RedisKeys, RequestKeys
from ttmark.detect_service.jobs.job_store import (
    RESULT_BYTES,
    Claim,
    DueCall,
    JobRecord,
    JobStoreFull,
    PartAnswer,
    StoreLimits,
    TenantFull,
    TooManyJobs,
    room,
)
from ttmark.shared.batches import batches
from ttmark.shared.vault.key_store_errors import StoreUnavailable
from ttmark.shared.vault.redis_client import RedisClient, script_command
from ttmark.shared.vault.redis_connections import HASH_TAG

# Jobs of an earlier release count for all jobs and not for their tenant, whose sum never falls below 0.
_ADD_BYTES = """
local function add_bytes(all, of_tenant, change)
  redis.call('INCRBY', all, change)
  if redis.call('INCRBY', of_tenant, change) <= 0 then redis.call('DEL', of_tenant) end
end
"""

# KEYS: job, jobs of the tenant, expiry, bytes, documents of the job, bytes of the tenant. ARGV: id, tenant,
# head, documents, parts, size, room for a result, most jobs, most bytes of the tenant, most bytes, when what
# is written so far may be forgotten. Gives why not, or nothing.
# What another request has written under this id and has not started is given up for this one.
RESERVE = f"""{_ADD_BYTES}
local was = redis.call('HMGET', KEYS[1], 'expires_at', 'bytes', 'head')
if was[1] then return 'there' end
if was[3] == ARGV[3] then return nil end
if not was[2] and redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[8]) then return 'jobs' end
local more = ARGV[6] - (was[2] or 0)
local of_tenant = (redis.call('GET', KEYS[6]) or 0) + more
if of_tenant > tonumber(ARGV[9]) then return 'tenant' end
if (redis.call('GET', KEYS[4]) or 0) + more + of_tenant > tonumber(ARGV[10]) then return 'bytes' end
redis.call('DEL', KEYS[5])
redis.call('HSET', KEYS[1], 'tenant', ARGV[2], 'head', ARGV[3], 'documents', ARGV[4], 'parts', ARGV[5],
           'answered', 0, 'failed', 0, 'done', 0, 'bytes', ARGV[6], 'room', ARGV[7])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[11], ARGV[1])
add_bytes(KEYS[4], KEYS[6], more)
return nil
"""

# KEYS: job, its documents. ARGV: head, then numbers of parts and their documents.
WRITE = """
if redis.call('HGET', KEYS[1], 'head') ~= ARGV[1] then return end
for place = 2, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[place], ARGV[place + 1]) end
"""

# KEYS: job, stream of the tenant, tenants, expiry, waiting. ARGV: id, tenant, when the job expires, head.
# Gives whether the job is there: not where another request writes under this id, or time ran out.
START = """
if redis.call('HEXISTS', KEYS[1], 'expires_at') == 1 then return 1 end
if redis.call('HGET', KEYS[1], 'head') ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], 'expires_at', ARGV[3])
redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1])
redis.call('INCRBY', KEYS[5], redis.call('HGET', KEYS[1], 'documents'))
redis.pcall('XGROUP', 'CREATE', KEYS[2], 'workers', '0', 'MKSTREAM')
redis.call('ZADD', KEYS[3], 'NX', 0, ARGV[2])
for part = 0, redis.call('HGET', KEYS[1], 'parts') - 1 do
  redis.call('XADD', KEYS[2], '*', 'job', ARGV[1], 'part', part)
end
return 1
"""

# KEYS: stream, tenants. ARGV: worker, milliseconds after which a lease has run out, tenant, now.
# Gives entry, job, part and how often it was claimed.
CLAIM = """
local found, cursor = nil, '0-0'
repeat
  local reply = redis.pcall('XAUTOCLAIM', KEYS[1], 'workers', ARGV[1], ARGV[2], cursor, 'COUNT', 1)
  if reply.err then return nil end
  cursor, found = reply[1], reply[2][1]
until found or cursor == '0-0'
if not found then
  local reply = redis.call('XREADGROUP', 'GROUP', 'workers', ARGV[1], 'COUNT', 1, 'STREAMS', KEYS[1], '>')
  found = reply and reply[1][2][1]
end
if not found then return nil end
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
local pending = redis.call('XPENDING', KEYS[1], 'workers', found[1], found[1], 1)
return {found[1], found[2][2], found[2][4], pending[1][4]}
"""

_REMOVE_ENTRY = """
local function remove(stream, tenants, entry, tenant)
  redis.pcall('XACK', stream, 'workers', entry)
  redis.call('XDEL', stream, entry)
  if redis.call('XLEN', stream) == 0 then
    redis.call('DEL', stream)
    redis.call('ZREM', tenants, tenant)
  end
end
"""

# KEYS: stream, tenants. ARGV: entry, tenant.
DROP = f"{_REMOVE_ENTRY} remove(KEYS[1], KEYS[2], ARGV[1], ARGV[2])"

_IF_HELD = """
local pending = redis.pcall('XPENDING', KEYS[1], 'workers', ARGV[2], ARGV[2], 1)
if pending.err or not pending[1] or pending[1][2] ~= ARGV[1] then return 0 end
if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
"""

# KEYS: stream, job. ARGV: worker, entry.
RENEW = f"""{_IF_HELD}
redis.call('XCLAIM', KEYS[1], 'workers', ARGV[1], 0, ARGV[2], 'IDLE', 0, 'JUSTID')
return 1
"""

# KEYS: stream, job. ARGV: worker, entry. Nobody's for so long that every lease of it has run out.
RELEASE = f"""{_IF_HELD}
redis.call('XCLAIM', KEYS[1], 'workers', 'nobody', 0, ARGV[2], 'IDLE', 1000000000,
           'RETRYCOUNT', pending[1][4] - 1, 'JUSTID')
return 1
"""

# KEYS: job, its documents, its results, stream, tenants, expiry, bytes, waiting, calls, bytes of the tenant.
# ARGV: part, entry, results, answered, failed, now, when the job expires if it is finished, whether to call
# then, id, tenant.
ANSWER = f"""{_REMOVE_ENTRY}{_ADD_BYTES}
local first = 0
if redis.call('HEXISTS', KEYS[1], 'expires_at') == 1
    and redis.call('HSETNX', KEYS[3], ARGV[1], ARGV[3]) == 1 then
  first = 1
  local room = (redis.call('HGET', KEYS[1], 'room') or 0) * ARGV[4]
  local change = #ARGV[3] - redis.call('HSTRLEN', KEYS[2], ARGV[1]) - room
  redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('HINCRBY', KEYS[1], 'bytes', change)
  add_bytes(KEYS[7], KEYS[10], change)
  redis.call('HINCRBY', KEYS[1], 'answered', ARGV[4])
  redis.call('HINCRBY', KEYS[1], 'failed', ARGV[5])
  redis.call('INCRBY', KEYS[8], -ARGV[4])
  if redis.call('HINCRBY', KEYS[1], 'done', 1) == tonumber(redis.call('HGET', KEYS[1], 'parts')) then
    redis.call('HSET', KEYS[1], 'finished_at', ARGV[6], 'expires_at', ARGV[7])
    redis.call('ZADD', KEYS[6], ARGV[7], ARGV[9])
    if ARGV[8] == '1' then redis.call('ZADD', KEYS[9], ARGV[6], ARGV[9]) end
  end
end
remove(KEYS[4], KEYS[5], ARGV[2], ARGV[10])
return first
"""

# KEYS: job, its documents, its results, jobs of the tenant, expiry, calls, bytes, waiting, bytes of the
# tenant. ARGV: id.
FORGET = f"""{_ADD_BYTES}
local was = redis.call('HMGET', KEYS[1], 'bytes', 'documents', 'answered', 'expires_at')
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('ZREM', KEYS[6], ARGV[1])
redis.call('SREM', KEYS[4], ARGV[1])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
if not was[1] then return 0 end
add_bytes(KEYS[7], KEYS[9], -was[1])
if was[4] then redis.call('INCRBY', KEYS[8], was[3] - was[2]) end
return 1
"""

# KEYS: calls, job. ARGV: id, now, seconds to the next attempt. Gives the number of this attempt, 0: not due.
CALL = """
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not due or tonumber(due) > tonumber(ARGV[2]) then return 0 end
local attempt = redis.call('HINCRBY', KEYS[2], 'calls', 1)
redis.call('ZADD', KEYS[1], ARGV[2] + ARGV[3] * 2 ^ (attempt - 1), ARGV[1])
return attempt
"""


_JOBS = f"{HASH_TAG}:jobs"
_TENANTS, _EXPIRY, _CALLS = f"{_JOBS}:tenants", f"{_JOBS}:expiry", f"{_JOBS}:calls"
_BYTES, _WAITING = f"{_JOBS}:bytes", f"{_JOBS}:waiting"
_BYTES_IN_A_COMMAND = 2**20
# How long a job may take to be written before what there is of it is forgotten.
_WRITING_SECONDS = 300.0
_REFUSALS = {b"jobs": TooManyJobs, b"tenant": TenantFull, b"bytes": JobStoreFull}


class RedisJobs:
    """The same as `SqliteJobs`, in Redis."""

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
        answer = await self._redis.ask(script_command(RESERVE, names, *values))
        if answer in _REFUSALS:
            raise _REFUSALS[answer]
        if answer is None:
            for some in batches(enumerate(parts), lambda part: len(part[1]), _BYTES_IN_A_COMMAND):
                numbered: list[str | bytes | int] = []
                for number, part in some:
                    numbered += [number, part]
                await self._redis.ask(script_command(WRITE, [name, documents], job.head, *numbered))
        names = [name, _stream(job.tenant), _TENANTS, _EXPIRY, _WAITING]
        start = script_command(START, names, job.job_id, job.tenant, str(job.expires_at), job.head)
        if not await self._redis.confirmed(start):
            raise StoreUnavailable("the job was written by another request meanwhile, or too slowly")

    async def get(self, tenant: str, job_id: str) -> JobRecord | None:
        job = await self._record(job_id)
        return job if job is not None and job.tenant == tenant else None

    async def claim(self, worker: str, besides: Collection[str] = ()) -> Claim | None:
        for tenant in await self._redis.ask(("ZRANGE", _TENANTS, 0, -1)):
            while tenant.decode() not in besides:
                command = script_command(
                    CLAIM,
                    [_stream(tenant.decode()), _TENANTS],
                    worker,
                    int(1000 * self.lease_seconds),
                    tenant,
                    str(time.time()),
                )
                taken = await self._redis.ask(command)
                if taken is None:
                    break
                entry, job_id, part, attempts = taken
                claim = await self._opened(entry, job_id.decode(), int(part), attempts, worker)
                if claim is not None:
                    return claim
                # Of a job that is gone.
                await self._redis.ask(
                    script_command(DROP, [_stream(tenant.decode()), _TENANTS], entry, tenant)
                )
        return None

    async def _opened(self, entry: bytes, job_id: str, part: int, attempts: int, worker: str) -> Claim | None:
        job = await self._record(job_id)
        documents = await self._redis.ask(("HGET", _job(job_id) + ":documents", str(part)))
        if job is None or documents is None:
            return None
        return Claim(job, part, documents, attempts, f"{worker} {entry.decode()}")

    async def renew(self, claim: Claim) -> bool:
        return await self._lease(claim, RENEW)

    async def release(self, claim: Claim) -> None:
        await self._lease(claim, RELEASE)

    async def _lease(self, claim: Claim, script: str) -> bool:
        names = [_stream(claim.job.tenant), _job(claim.job.job_id)]
        return bool(await self._redis.ask(script_command(script, names, *claim.handle.split(" "))))

    async def answer(self, claim: Claim, answer: PartAnswer) -> bool:
        job, entry = _job(claim.job.job_id), claim.handle.split(" ")[1]
        names = [job, f"{job}:documents", f"{job}:results", _stream(claim.job.tenant), _TENANTS, _EXPIRY]
        names += [_BYTES, _WAITING, _CALLS, _bytes_of(claim.job.tenant)]
        command = script_command(
            ANSWER,
            names,
            *(claim.part, entry, answer.results, answer.answered, answer.failed),
            *(str(answer.now), str(answer.expires_at), int(answer.calls), claim.job.job_id, claim.job.tenant),
        )
        return bool(await self._redis.ask(command))

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
        return bool(await self._redis.confirmed(script_command(FORGET, names, job_id)))

    async def next_call(
        self, now: float, *, pause_seconds: float, besides: Collection[str] = ()
    ) -> DueCall | None:
        for name in await self._redis.ask(("ZRANGEBYSCORE", _CALLS, "-inf", str(now))):
            job_id = name.decode()
            job = await self._record(job_id)
            if job is None or job.tenant in besides:
                continue
            names = [_CALLS, _job(job_id)]
            call = script_command(CALL, names, job_id, str(now), str(pause_seconds))
            if attempt := await self._redis.ask(call):
                return DueCall(job, attempt)
        return None

    async def called(self, job_id: str) -> None:
        await self._redis.ask(("ZREM", _CALLS, job_id))

    async def waiting(self) -> int:
        return int(await self._redis.ask(("GET", _WAITING)) or 0)

    async def close(self) -> None:
        await self._redis.close()

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
