"""One SQLite file and the thread that owns its connection."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from ttmark.shared.vault.key_store_errors import StoreUnavailable

T = TypeVar("T")

_RETRY_SECONDS = 0.01


class SqliteFile:
    """A file of mode 0600, in WAL mode with full synchronisation, that is opened when it is first used.

    One thread owns the connection, so a caller that goes away never leaves a statement half done.

    Args:
        name: what messages call it.
        schema: statements that make what is missing.
    """

    def __init__(self, name: str, path: Path, schema: Sequence[str], *, busy_seconds: float = 2.0) -> None:
        self._name = name
        self._path = path
        self._schema = schema
        self._busy_seconds = busy_seconds
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
                raise StoreUnavailable(f"{self._name}: {error}") from error

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
        """Closes the file; repeating it is harmless."""
        if self._closed:
            return
        self._closed = True

        def close() -> None:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

        await asyncio.get_running_loop().run_in_executor(self._thread, close)
        self._thread.shutdown()

    def _open(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(
            self._path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
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
        deadline = time.monotonic() + self._busy_seconds
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
