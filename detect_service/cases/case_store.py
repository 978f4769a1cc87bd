"""Where cases are kept: sealed, within limits, until their time is over; in a SQLite file or in Redis.

In Redis `{ttmark}:case:<id>` is a case. `{ttmark}:cases:*` are when each expires, what all take, and what
each tenant's take. As with jobs nothing expires by itself: Redis would evict it when its memory is full.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from ttmark.detect_service.idempotency import idempotency_store
from ttmark.detect_service.idempotency.idempotency_store import RedisKeys, RequestKeys
from ttmark.detect_service.stored_records import SqliteRecords
from ttmark.shared.vault.redis_client import RedisClient, script_command
from ttmark.shared.vault.redis_connections import HASH_TAG


class TenantStoreFull(Exception):
    """The tenant's cases would take more room than a tenant may."""


class CaseStoreFull(Exception):
    """All cases would take more room than they may."""


@dataclass(frozen=True, slots=True)
class KeptCase:
    """A case as it lies in the store.

    Attributes:
        sealed: the case, who stored it, and when.
        expires_at: Unix time from which it may be forgotten.
    """

    case_id: str
    tenant: str
    sealed: bytes
    expires_at: float


@dataclass(frozen=True, slots=True)
class CaseRoom:
    """Bytes that sealed cases may take, over all replicas.

    Attributes:
        of_tenant: of one tenant's cases.
        of_all: of those of all tenants.
    """

    of_tenant: int
    of_all: int


_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS cases (
    case_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, sealed BLOB NOT NULL, expires_at REAL NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS cases_of_tenant ON cases (tenant)",
    *idempotency_store.SCHEMA,
    "PRAGMA secure_delete = ON",  # a case that is forgotten leaves no bytes in the file
)


class SqliteCases(SqliteRecords):
    """Cases in a `SqliteFile`.

    Attributes:
        keys: idempotency keys of requests to keep a case.
    """

    def __init__(self, path: Path) -> None:
        super().__init__("case store", path, _SCHEMA, "cases", "case_id")
        self.keys: RequestKeys = idempotency_store.SqliteKeys(self._file)

    async def keep(self, case: KeptCase, room: CaseRoom) -> None:
        """Keeps a case. Repeating it changes nothing.

        Raises:
            TenantStoreFull, CaseStoreFull: it was not kept.
        """

        def write(connection: sqlite3.Connection) -> None:
            if connection.execute("SELECT 1 FROM cases WHERE case_id = ?", (case.case_id,)).fetchone():
                return
            held, of_tenant = connection.execute(
                "SELECT TOTAL(LENGTH(sealed)), TOTAL(LENGTH(sealed)) FILTER (WHERE tenant = ?) FROM cases",
                (case.tenant,),
            ).fetchone()
            if of_tenant + len(case.sealed) > room.of_tenant:
                raise TenantStoreFull
            if held + len(case.sealed) > room.of_all:
                raise CaseStoreFull
            connection.execute(
                "INSERT INTO cases (case_id, tenant, sealed, expires_at) VALUES (?, ?, ?, ?)",
                (case.case_id, case.tenant, case.sealed, case.expires_at),
            )

        await self._file.change(write)

    async def get(self, tenant: str, case_id: str) -> KeptCase | None:
        """The tenant's case, or None."""
        statement = "SELECT case_id, tenant, sealed, expires_at FROM cases WHERE tenant = ? AND case_id = ?"
        rows = await self._rows(statement, tenant, case_id)
        return KeptCase(*rows[0]) if rows else None


_CASES = f"{HASH_TAG}:cases"
_EXPIRY, _BYTES = f"{_CASES}:expiry", f"{_CASES}:bytes"

# KEYS: case, expiry, bytes, bytes of the tenant. ARGV: id, tenant, sealed, when it expires, most bytes of the
# tenant, most bytes of all. Gives why not, or nothing.
_KEEP = """
if redis.call('EXISTS', KEYS[1]) == 1 then return nil end
local size = #ARGV[3]
if tonumber(redis.call('GET', KEYS[4]) or '0') + size > tonumber(ARGV[5]) then return 'tenant' end
if tonumber(redis.call('GET', KEYS[3]) or '0') + size > tonumber(ARGV[6]) then return 'all' end
redis.call('HSET', KEYS[1], 'tenant', ARGV[2], 'sealed', ARGV[3], 'expires_at', ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
redis.call('INCRBY', KEYS[3], size)
redis.call('INCRBY', KEYS[4], size)
return nil
"""

# KEYS: as above. ARGV: id, tenant.
_FORGET = """
local was = redis.call('HMGET', KEYS[1], 'tenant', 'sealed')
if was[1] ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('DEL', KEYS[1])
redis.call('INCRBY', KEYS[3], -#was[2])
if redis.call('INCRBY', KEYS[4], -#was[2]) <= 0 then redis.call('DEL', KEYS[4]) end
return 1
"""


class RedisCases:
    """The same in Redis. Changes are scripts: each happens as a whole or not at all."""

    def __init__(self, client: RedisClient) -> None:
        self._redis = client
        self.keys: RequestKeys = RedisKeys(self._redis, _CASES)

    async def keep(self, case: KeptCase, room: CaseRoom) -> None:
        values = (case.case_id, case.tenant, case.sealed, str(case.expires_at), room.of_tenant, room.of_all)
        refusal = await self._redis.confirmed(
            script_command(_KEEP, _names(case.tenant, case.case_id), *values)
        )
        if refusal == b"tenant":
            raise TenantStoreFull
        if refusal == b"all":
            raise CaseStoreFull

    async def get(self, tenant: str, case_id: str) -> KeptCase | None:
        of, sealed, expires_at = await self._redis.ask(
            ("HMGET", _case(case_id), "tenant", "sealed", "expires_at")
        )
        if of is None or of.decode() != tenant:
            return None
        return KeptCase(case_id, tenant, sealed, float(expires_at))

    async def delete(self, tenant: str, case_id: str) -> bool:
        command = script_command(_FORGET, _names(tenant, case_id), case_id, tenant)
        return bool(await self._redis.confirmed(command))

    async def expire(self, now: float) -> int:
        forgotten = 0
        for name in await self._redis.ask(("ZRANGEBYSCORE", _EXPIRY, "-inf", str(now))):
            case_id = name.decode()
            tenant = await self._redis.ask(("HGET", _case(case_id), "tenant"))
            forgotten += tenant is not None and await self.delete(tenant.decode(), case_id)
        return forgotten

    async def close(self) -> None:
        await self._redis.close()


CaseStore = SqliteCases | RedisCases


def _names(tenant: str, case_id: str) -> list[str]:
    return [_case(case_id), _EXPIRY, _BYTES, f"{_BYTES}:{tenant}"]


def _case(case_id: str) -> str:
    return f"{HASH_TAG}:case:{case_id}"
