"""The embedded store: one SQLite file and the thread that owns its connection, for a single machine."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ttmark.shared.vault.stores.key_store_errors import RevisionConflict, StoreUnavailable
from ttmark.shared.vault.stores.store import Stored

T = TypeVar("T")

_RETRY_SECONDS = 0.01
_BUSY_SECONDS = 2.0
# Of the index that is made beside a file in WAL mode, and its first page.
_LEAST_ROOM = 2**16


class SqliteFile:
    """A file of mode 0600, in WAL mode with full synchronisation, that is opened when it is first used.

    One thread owns the connection, so a caller that goes away never leaves a statement half done.

    Args:
        name: what messages call it.
        schema: statements that make what is missing.
    """

    def __init__(self, name: str, path: Path, schema: Sequence[str]) -> None:
        self._name = name
        self._path = path
        self._schema = schema
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite")
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of `work` with the connection, on its thread; each statement is a transaction.

        Raises:
            StoreUnavailable: the file cannot be used.
        """

        def guarded() -> T:
            try:
                if self._connection is None:
                    self._connection = self._open()
                return work(self._connection)
            except (sqlite3.Error, OSError) as error:
                reason = "the disk is full" if self._is_full(error) else error
                raise StoreUnavailable(f"{self._name}: {reason}") from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, guarded)

    async def change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of `work` in one transaction, which has the right to write from its start.

        Raises:
            StoreUnavailable: the file cannot be used; nothing was changed.
        """

        def in_transaction(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                return work(connection)

        return await self.run(in_transaction)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True

        def close() -> None:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

        await asyncio.get_running_loop().run_in_executor(self._thread, close)
        self._thread.shutdown()

    def _is_full(self, error: Exception) -> bool:
        """Of a full disk SQLite says so, or "disk I/O error"; then the file system is asked."""
        name = getattr(error, "sqlite_errorname", "")
        if not name.startswith("SQLITE_IOERR"):
            return name == "SQLITE_FULL"
        with suppress(OSError):
            disk = os.statvfs(self._path.parent)
            return disk.f_bavail * disk.f_frsize < _LEAST_ROOM
        return False

    def _open(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._enter_wal_mode(connection)
            connection.execute("PRAGMA synchronous = FULL")
            for statement in self._schema:
                connection.execute(statement)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _enter_wal_mode(self, connection: sqlite3.Connection) -> None:
        """Waits for others that open the same new file: SQLite does not, where a mode is changed."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)


_POLL_SECONDS = 0.5
_RECORDS = """
CREATE TABLE IF NOT EXISTS records (
    kind TEXT NOT NULL, record_id TEXT NOT NULL, revision INTEGER NOT NULL, payload BLOB NOT NULL,
    PRIMARY KEY (kind, record_id)
) WITHOUT ROWID
"""
_COUNTS = "CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID"
_ADD = """
INSERT INTO counts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value
RETURNING value
"""


class SqliteStore:
    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(f"key store {path}", path, (_RECORDS, _COUNTS))

    async def get(self, kind: str, record_id: str) -> Stored | None:
        return await self._file.run(lambda connection: _select(connection, kind, record_id))

    async def scan(self, kind: str) -> list[tuple[str, Stored]]:
        def select(connection: sqlite3.Connection) -> list[tuple[str, Stored]]:
            rows = connection.execute(
                "SELECT record_id, revision, payload FROM records WHERE kind = ? ORDER BY record_id", (kind,)
            )
            return [(record_id, Stored(revision, payload)) for record_id, revision, payload in rows]

        return await self._file.run(select)

    async def put(self, kind: str, record_id: str, payload: bytes, *, expected_revision: int) -> int:
        revision = expected_revision + 1

        def write(connection: sqlite3.Connection) -> int:
            if expected_revision == 0:
                statement = "INSERT INTO records VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
                values: tuple[object, ...] = (kind, record_id, revision, payload)
            else:
                statement = (
                    "UPDATE records SET revision = ?, payload = ?"
                    " WHERE kind = ? AND record_id = ? AND revision = ?"
                )
                values = (revision, payload, kind, record_id, expected_revision)
            if connection.execute(statement, values).rowcount == 1:
                return revision
            if _select(connection, kind, record_id) == Stored(revision, payload):
                return revision
            raise RevisionConflict(f"{kind} {record_id} is not at revision {expected_revision}")

        return await self._file.run(write)

    async def add(self, amounts: Mapping[str, int]) -> dict[str, int]:
        def write(connection: sqlite3.Connection) -> dict[str, int]:
            return {item[0]: connection.execute(_ADD, item).fetchone()[0] for item in amounts.items()}

        return await self._file.change(write) if amounts else {}

    async def counts(self) -> dict[str, int]:
        return await self._file.run(
            lambda connection: dict(connection.execute("SELECT name, value FROM counts").fetchall())
        )

    async def watch(self, changed: Callable[[str], None]) -> None:
        """Looks every half second whether the file changed, and then names every kind in it."""

        def state(connection: sqlite3.Connection) -> tuple[int, int]:
            # data_version counts other connections' changes, total_changes our own.
            return connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes

        def kinds(connection: sqlite3.Connection) -> list[str]:
            return [kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM records")]

        before = await self._file.run(state)
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            after = await self._file.run(state)
            if after != before:
                before = after
                for kind in await self._file.run(kinds):
                    changed(kind)

    async def ping(self) -> None:
        await self._file.run(
            lambda connection: connection.execute("SELECT 1 FROM records LIMIT 1").fetchone()
        )

    async def close(self) -> None:
        await self._file.close()


def _select(connection: sqlite3.Connection, kind: str, record_id: str) -> Stored | None:
    row = connection.execute(
        "SELECT revision, payload FROM records WHERE kind = ? AND record_id = ?", (kind, record_id)
    ).fetchone()
    return Stored(*row) if row else None
