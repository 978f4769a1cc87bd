"""The queue in a SQLite file."""

import sqlite3
from pathlib import Path

from ttmark.detect_service.queue.queue_store import KeptItem, QueueFull
from ttmark.shared.schemas.queue import QueueState
from ttmark.shared.vault.sqlite_file import SqliteFile

_SELECT = "SELECT item_id, tenant, state, version, sealed, added_at, expires_at FROM items WHERE tenant = ?"
_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS items (
    item_id TEXT NOT NULL, tenant TEXT NOT NULL, state TEXT NOT NULL, version INTEGER NOT NULL,
    sealed BLOB NOT NULL, added_at REAL NOT NULL, expires_at REAL NOT NULL, PRIMARY KEY (tenant, item_id)
)""",
    "CREATE INDEX IF NOT EXISTS items_in_order ON items (tenant, added_at)",
    "PRAGMA secure_delete = ON",  # what is forgotten leaves no bytes in the file
)


class SqliteQueue:
    """QueueStore in a `SqliteFile`."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(f"queue store {path}", path, _SCHEMA)

    async def add(self, item: KeptItem, most: int) -> bool:
        def write(connection: sqlite3.Connection) -> bool:
            there = "SELECT 1 FROM items WHERE tenant = ? AND item_id = ?"
            if connection.execute(there, (item.tenant, item.item_id)).fetchone():
                return False
            count = "SELECT COUNT(*) FROM items WHERE tenant = ?"
            if connection.execute(count, (item.tenant,)).fetchone()[0] >= most:
                raise QueueFull
            connection.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?)", _values(item))
            return True

        return await self._file.change(write)

    async def replace(self, item: KeptItem) -> bool:
        statement = (
            "UPDATE items SET state = ?, version = ?, sealed = ?, expires_at = ? "
            "WHERE tenant = ? AND item_id = ? AND version = ?"
        )
        new = (item.state, item.version, item.sealed, item.expires_at)
        which = (item.tenant, item.item_id, item.version - 1)
        return await self._file.change(
            lambda connection: connection.execute(statement, (*new, *which)).rowcount == 1
        )

    async def get(self, tenant: str, item_id: str) -> KeptItem | None:
        statement = _SELECT + " AND item_id = ?"
        row = await self._file.run(
            lambda connection: connection.execute(statement, (tenant, item_id)).fetchone()
        )
        return KeptItem(*row) if row else None

    async def listed(self, tenant: str, state: QueueState | None, offset: int, limit: int) -> list[KeptItem]:
        in_order = " AND (? IS NULL OR state = ?) ORDER BY added_at DESC, item_id DESC LIMIT ? OFFSET ?"
        values = (tenant, state, state, limit, offset)
        rows = await self._file.run(
            lambda connection: connection.execute(_SELECT + in_order, values).fetchall()
        )
        return [KeptItem(*row) for row in rows]

    async def delete(self, tenant: str, item_id: str) -> bool:
        statement = "DELETE FROM items WHERE tenant = ? AND item_id = ?"
        return await self._file.change(
            lambda connection: connection.execute(statement, (tenant, item_id)).rowcount == 1
        )

    async def expire(self, now: float) -> int:
        statement = "DELETE FROM items WHERE expires_at <= ?"
        return await self._file.change(lambda connection: connection.execute(statement, (now,)).rowcount)

    async def close(self) -> None:
        await self._file.close()


def _values(item: KeptItem) -> tuple[object, ...]:
    return (
        item.item_id,
        item.tenant,
        item.state,
        item.version,
        item.sealed,
        item.added_at,
        item.expires_at,
    )
