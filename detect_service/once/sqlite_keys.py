"""Idempotency keys in the SQLite file of what they are used for."""

import sqlite3

from ttmark.detect_service.once.request_keys import MOST_KEYS
from ttmark.shared.vault.sqlite_file import SqliteFile

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
    """RequestKeys in a `SqliteFile` whose schema includes `SCHEMA`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def get(self, tenant: str, name: str) -> bytes | None:
        statement = "SELECT entry FROM request_keys WHERE tenant = ? AND name = ?"
        row = await self._file.run(
            lambda connection: connection.execute(statement, (tenant, name)).fetchone()
        )
        return row[0] if row else None

    async def put(self, tenant: str, name: str, entry: bytes, *, was: bytes | None, until: float) -> bool:
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
        statement = "DELETE FROM request_keys WHERE until <= ?"
        await self._file.run(lambda connection: connection.execute(statement, (now,)))
