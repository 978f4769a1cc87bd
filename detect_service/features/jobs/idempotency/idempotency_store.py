"""Where idempotency keys are kept: an entry for each, changed by one request at a time; SQLite or Redis.

In Redis, below a prefix, `:keys:of:<tenant>` has a tenant's entries by name, `:keys:until:<tenant>` until
when each is kept, and `:keys:tenants` each tenant's latest of these times.
"""

import sqlite3
from pathlib import Path

from ttmark.shared.vault.stores.redis_client import RedisClient, script_command
from ttmark.shared.vault.stores.redis_connections import Command
from ttmark.shared.vault.stores.sqlite_store import SqliteFile

# Of a tenant. Beyond, its oldest entry is forgotten: a flood of keys costs nobody else room.
MOST_KEYS = 4_096


SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS request_keys (
    tenant TEXT NOT NULL, name TEXT NOT NULL, entry BLOB NOT NULL, until REAL NOT NULL,
    PRIMARY KEY (tenant, name)
)""",
    "CREATE INDEX IF NOT EXISTS request_keys_of_tenant ON request_keys (tenant, until)",
)
_SURPLUS = "SELECT name FROM request_keys WHERE tenant = ? ORDER BY until DESC LIMIT -1 OFFSET ?"
_FORGET_SURPLUS = f"DELETE FROM request_keys WHERE tenant = ? AND name IN ({_SURPLUS})"  # noqa: S608
_HELD = "WHERE tenant = ? AND name = ? AND entry = ?"


class SqliteKeys:
    """Sealed entries of tenants by name, in a `SqliteFile` whose schema includes `SCHEMA`.

    No two are equal: an entry that is still there was not changed. Every method raises StoreUnavailable when
    the store does not answer in time.
    """

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def get(self, tenant: str, name: str) -> bytes | None:
        statement = "SELECT entry FROM request_keys WHERE tenant = ? AND name = ?"
        row = await self._file.run(
            lambda connection: connection.execute(statement, (tenant, name)).fetchone()
        )
        return row[0] if row else None

    async def put(self, tenant: str, name: str, entry: bytes, *, was: bytes | None, until: float) -> bool:
        """Keeps `entry` until then in place of `was`, or of nothing; False: something else is there."""

        def write(connection: sqlite3.Connection) -> bool:
            if was is not None:
                change = f"UPDATE request_keys SET entry = ?, until = ? {_HELD}"  # noqa: S608
                return connection.execute(change, (entry, until, tenant, name, was)).rowcount == 1
            add = "INSERT INTO request_keys VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
            if connection.execute(add, (tenant, name, entry, until)).rowcount == 0:
                return False
            connection.execute(_FORGET_SURPLUS, (tenant, tenant, MOST_KEYS))
            return True

        return await self._file.change(write)

    async def remove(self, tenant: str, name: str, *, was: bytes) -> None:
        statement = f"DELETE FROM request_keys {_HELD}"  # noqa: S608
        await self._file.run(lambda connection: connection.execute(statement, (tenant, name, was)))

    async def expire(self, now: float) -> None:
        """Forgets the entries whose time is over, of a busy tenant some later."""
        statement = "DELETE FROM request_keys WHERE until <= ?"
        await self._file.run(lambda connection: connection.execute(statement, (now,)))


_LUA = Path(__file__).with_suffix(".lua")


class RedisKeys:
    def __init__(self, redis: RedisClient, prefix: str) -> None:
        self._redis = redis
        self._prefix = f"{prefix}:keys"

    async def get(self, tenant: str, name: str) -> bytes | None:
        entry: bytes | None = await self._redis.ask(("HGET", self._names(tenant)[0], name))
        return entry

    async def put(self, tenant: str, name: str, entry: bytes, *, was: bytes | None, until: float) -> bool:
        values = (name, tenant, was or b"", entry, str(until), MOST_KEYS)
        return bool(await self._redis.ask(self._script("put", tenant, *values)))

    async def remove(self, tenant: str, name: str, *, was: bytes) -> None:
        await self._redis.ask(self._script("remove", tenant, name, tenant, was))

    async def expire(self, now: float) -> None:
        over = ("ZRANGEBYSCORE", f"{self._prefix}:tenants", "-inf", str(now))
        for tenant in await self._redis.ask(over):
            await self._redis.ask(self._script("expire", tenant.decode(), str(now), tenant))

    def _script(self, function: str, tenant: str, *values: str | bytes | int) -> Command:
        return script_command(_LUA, function, self._names(tenant), *values)

    def _names(self, tenant: str) -> list[str]:
        return [f"{self._prefix}:of:{tenant}", f"{self._prefix}:until:{tenant}", f"{self._prefix}:tenants"]


RequestKeys = SqliteKeys | RedisKeys
