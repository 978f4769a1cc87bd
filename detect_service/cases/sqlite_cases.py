"""Cases in a SQLite file."""

import sqlite3
from pathlib import Path

from ttmark.detect_service.cases.case_store import CaseRoom, CaseStoreFull, KeptCase, TenantStoreFull
from ttmark.detect_service.once import sqlite_keys
from ttmark.detect_service.once.request_keys import RequestKeys
from ttmark.shared.vault.sqlite_file import SqliteFile

_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS cases (
    case_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, sealed BLOB NOT NULL, expires_at REAL NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS cases_of_tenant ON cases (tenant)",
    *sqlite_keys.SCHEMA,
    "PRAGMA secure_delete = ON",  # a case that is forgotten leaves no bytes in the file
)


class SqliteCases:
    """CaseStore in a `SqliteFile`."""

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(f"case store {path}", path, _SCHEMA)
        self.keys: RequestKeys = sqlite_keys.SqliteKeys(self._file)

    async def keep(self, case: KeptCase, room: CaseRoom) -> None:
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
        statement = "SELECT case_id, tenant, sealed, expires_at FROM cases WHERE tenant = ? AND case_id = ?"
        row = await self._file.run(
            lambda connection: connection.execute(statement, (tenant, case_id)).fetchone()
        )
        return KeptCase(*row) if row else None

    async def delete(self, tenant: str, case_id: str) -> bool:
        statement = "DELETE FROM cases WHERE tenant = ? AND case_id = ?"
        return await self._file.change(
            lambda connection: connection.execute(statement, (tenant, case_id)).rowcount == 1
        )

    async def expire(self, now: float) -> int:
        statement = "DELETE FROM cases WHERE expires_at <= ?"
        return await self._file.change(lambda connection: connection.execute(statement, (now,)).rowcount)

    async def close(self) -> None:
        await self._file.close()
