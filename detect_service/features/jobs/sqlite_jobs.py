"""Detection jobs in a SQLite file."""

import json
import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ttmark.detect_service.features.jobs.idempotency import idempotency_store
from ttmark.detect_service.features.jobs.idempotency.idempotency_store import RequestKeys
from ttmark.detect_service.features.jobs.job_store import (
    RESULT_BYTES,
    Claim,
    DueCall,
    JobRecord,
    NoRoom,
    PartAnswer,
    StoreLimits,
    room,
)
from ttmark.shared.vault.stores.sqlite_store import SqliteFile

_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, job_id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, head BLOB NOT NULL,
    documents INTEGER NOT NULL, parts INTEGER NOT NULL, expires_at REAL NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, finished_at REAL,
    served REAL NOT NULL DEFAULT 0, call_at REAL, call_attempts INTEGER NOT NULL DEFAULT 0
)""",
    """
CREATE TABLE IF NOT EXISTS parts (
    job_id TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE, part INTEGER NOT NULL,
    documents BLOB, results BLOB, worker TEXT, leased_until REAL NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (job_id, part)
)""",
    "CREATE INDEX IF NOT EXISTS open_parts ON parts (job_id, part) WHERE results IS NULL",
    *idempotency_store.SCHEMA,
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # a text that is forgotten leaves no bytes in the file
)
_COLUMNS = "jobs.job_id, tenant, head, jobs.documents, parts, expires_at, answered, failed, finished_at"
_SIZES = f"""
SELECT tenant, SUM((documents - answered) * {RESULT_BYTES} + (
    SELECT TOTAL(LENGTH(parts.documents)) + TOTAL(LENGTH(results)) FROM parts WHERE parts.job_id = jobs.job_id
)) FROM jobs GROUP BY tenant
"""  # noqa: S608 - of constants
_BESIDES = "tenant NOT IN (SELECT value FROM json_each(?))"
_NEXT_JOB = f"""
SELECT {_COLUMNS} FROM jobs WHERE {_BESIDES} AND EXISTS (
    SELECT 1 FROM parts WHERE parts.job_id = jobs.job_id AND results IS NULL AND leased_until <= ?
) ORDER BY (SELECT MAX(served) FROM jobs AS other WHERE other.tenant = jobs.tenant), number LIMIT 1
"""  # noqa: S608 - of constants
_NEXT_CALL = f"""
SELECT job_id, call_attempts FROM jobs WHERE {_BESIDES} AND call_at <= ? ORDER BY call_at LIMIT 1
"""  # noqa: S608 - of constants
_NEXT_PART = """
SELECT part, documents, attempts FROM parts WHERE job_id = ? AND results IS NULL AND leased_until <= ?
ORDER BY part LIMIT 1
"""
_HELD = "job_id = ? AND part = ? AND worker = ? AND results IS NULL"


class SqliteJobs:
    """Jobs and their parts in a `SqliteFile`. Methods raise StoreUnavailable when it does not answer."""

    def __init__(self, path: Path, *, lease_seconds: float) -> None:
        self._file = SqliteFile(f"job store {path}", path, _SCHEMA)
        self.lease_seconds = lease_seconds
        self.keys: RequestKeys = idempotency_store.SqliteKeys(self._file)

    async def create(self, job: JobRecord, parts: Sequence[bytes], limits: StoreLimits) -> None:
        """Keeps a job that nobody has worked on. Repeating it changes nothing.

        Of several at once under one id, be they sealed differently, one is kept as a whole.

        Raises:
            NoRoom: nothing was kept.
        """

        def write(connection: sqlite3.Connection) -> None:
            if connection.execute("SELECT 1 FROM jobs WHERE job_id = ?", (job.job_id,)).fetchone():
                return
            of_tenant = "SELECT COUNT(*) FROM jobs WHERE tenant = ?"
            if connection.execute(of_tenant, (job.tenant,)).fetchone()[0] >= limits.jobs:
                raise NoRoom("jobs")
            sizes = dict(connection.execute(_SIZES))
            more = room(job.documents, sum(map(len, parts)))
            tenant_size = sizes.get(job.tenant, 0) + more
            if tenant_size > limits.tenant_size:
                raise NoRoom("tenant")
            if sum(sizes.values()) + more + tenant_size > limits.size:
                raise NoRoom("bytes")
            connection.execute(
                "INSERT INTO jobs (job_id, tenant, head, documents, parts, expires_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (job.job_id, job.tenant, job.head, job.documents, job.parts, job.expires_at),
            )
            connection.executemany(
                "INSERT INTO parts (job_id, part, documents) VALUES (?, ?, ?)",
                [(job.job_id, number, part) for number, part in enumerate(parts)],
            )

        await self._file.change(write)

    async def get(self, tenant: str, job_id: str) -> JobRecord | None:
        return await self._file.run(lambda connection: _job(connection, job_id, tenant))

    async def claim(self, worker: str, besides: Collection[str] = ()) -> Claim | None:
        """A part that nobody has, of any tenant but these; who was served least recently goes first."""

        def take(connection: sqlite3.Connection) -> Claim | None:
            now = time.time()
            found = connection.execute(_NEXT_JOB, (_listed(besides), now)).fetchone()
            if found is None:
                return None
            job = JobRecord(*found)
            part, documents, attempts = connection.execute(_NEXT_PART, (job.job_id, now)).fetchone()
            connection.execute(
                "UPDATE parts SET worker = ?, leased_until = ?, attempts = attempts + 1"
                " WHERE job_id = ? AND part = ?",
                (worker, now + self.lease_seconds, job.job_id, part),
            )
            connection.execute("UPDATE jobs SET served = ? WHERE job_id = ?", (now, job.job_id))
            return Claim(job, part, documents, attempts + 1, worker)

        return await self._file.change(take)

    async def renew(self, claim: Claim) -> bool:
        """Begins the lease anew; False where another worker has the part by now, or the job is gone."""
        return await self._lease(claim, "leased_until = ?", time.time() + self.lease_seconds)

    async def release(self, claim: Claim) -> None:
        """Gives the part to whoever claims it next, as if it had not been claimed."""
        await self._lease(claim, "worker = NULL, attempts = attempts - 1, leased_until = ?", 0.0)

    async def _lease(self, claim: Claim, change: str, until: float) -> bool:
        statement = f"UPDATE parts SET {change} WHERE {_HELD}"  # noqa: S608 - of constants
        return await self._changed(statement, until, claim.job.job_id, claim.part, claim.handle) == 1

    async def answer(self, claim: Claim, answer: PartAnswer) -> bool:
        """Keeps the part's results and forgets its documents; False: it has results, or the job is gone."""

        def write(connection: sqlite3.Connection) -> bool:
            job_id = claim.job.job_id
            first = connection.execute(
                "UPDATE parts SET results = ?, documents = NULL"
                " WHERE job_id = ? AND part = ? AND results IS NULL",
                (answer.results, job_id, claim.part),
            )
            if first.rowcount == 0:
                return False
            connection.execute(
                "UPDATE jobs SET answered = answered + ?, failed = failed + ? WHERE job_id = ?",
                (answer.answered, answer.failed, job_id),
            )
            connection.execute(
                "UPDATE jobs SET finished_at = ?, expires_at = ?, call_at = ?"
                " WHERE job_id = ? AND answered = documents",
                (answer.now, answer.expires_at, answer.now if answer.calls else None, job_id),
            )
            return True

        return await self._file.change(write)

    async def results(self, job_id: str, first: int, count: int) -> list[bytes | None]:
        """The sealed results of parts from `first` on; None for a part without."""
        statement = "SELECT results FROM parts WHERE job_id = ? AND part >= ? ORDER BY part LIMIT ?"
        return [row[0] for row in await self._rows(statement, job_id, first, count)]

    async def next_call(
        self, now: float, *, pause_seconds: float, besides: Collection[str] = ()
    ) -> DueCall | None:
        """A finished job, of any tenant but these, of which somebody is to be told now.

        It is due again `pause_seconds` later, after each further attempt twice as long, until `called`.
        """

        def take(connection: sqlite3.Connection) -> DueCall | None:
            found = connection.execute(_NEXT_CALL, (_listed(besides), now)).fetchone()
            if found is None:
                return None
            job_id, attempts = found
            connection.execute(
                "UPDATE jobs SET call_at = ?, call_attempts = call_attempts + 1 WHERE job_id = ?",
                (now + pause_seconds * 2**attempts, job_id),
            )
            job = _job(connection, job_id)
            return DueCall(job, attempts + 1) if job else None

        return await self._file.change(take)

    async def called(self, job_id: str) -> None:
        await self._changed("UPDATE jobs SET call_at = NULL WHERE job_id = ?", job_id)

    async def waiting(self) -> int:
        ((waiting,),) = await self._rows("SELECT TOTAL(documents - answered) FROM jobs")
        return int(waiting)

    async def delete(self, tenant: str, job_id: str) -> bool:
        return await self._changed("DELETE FROM jobs WHERE tenant = ? AND job_id = ?", tenant, job_id) == 1

    async def expire(self, now: float) -> int:
        return await self._changed("DELETE FROM jobs WHERE expires_at <= ?", now)

    async def close(self) -> None:
        await self._file.close()

    async def _rows(self, statement: str, *values: object) -> list[Any]:
        return await self._file.run(lambda connection: connection.execute(statement, values).fetchall())

    async def _changed(self, statement: str, *values: object) -> int:
        return await self._file.change(lambda connection: connection.execute(statement, values).rowcount)


def _listed(tenants: Collection[str]) -> str:
    return json.dumps(list(tenants))


def _job(connection: sqlite3.Connection, job_id: str, tenant: str | None = None) -> JobRecord | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM jobs WHERE job_id = ? AND (? IS NULL OR tenant = ?)",  # noqa: S608
        (job_id, tenant, tenant),
    ).fetchone()
    return JobRecord(*row) if row else None
