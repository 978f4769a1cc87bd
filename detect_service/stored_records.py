"""Records of jobs: stores that may be away, entries that expire, audit events."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import structlog

from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import StoreDown
from ttmark.shared.vault.audit_events import Action, AuditEvent
from ttmark.shared.vault.key_store_errors import KeyStoreError
from ttmark.shared.vault.sqlite_store import SqliteFile

_EXPIRE_SECONDS = 30.0


class SqliteRecords:
    """Records of tenants that expire, in one table of a `SqliteFile`.

    Every method raises StoreUnavailable when the store does not answer in time.

    Args:
        name: what messages call the file.
        id_column: of the table, which has the columns `tenant` and `expires_at`, too.
    """

    def __init__(self, name: str, path: Path, schema: Sequence[str], table: str, id_column: str) -> None:
        self._file = SqliteFile(f"{name} {path}", path, schema)
        self._table, self._id_column = table, id_column

    async def delete(self, tenant: str, record_id: str) -> bool:
        """Forgets a record of the tenant; whether there was one."""
        statement = f"DELETE FROM {self._table} WHERE tenant = ? AND {self._id_column} = ?"  # noqa: S608
        return await self._changed(statement, tenant, record_id) == 1

    async def expire(self, now: float) -> int:
        """Forgets the records whose time has come; how many."""
        return await self._changed(f"DELETE FROM {self._table} WHERE expires_at <= ?", now)  # noqa: S608

    async def close(self) -> None:
        """Gives up connections and files."""
        await self._file.close()

    async def _rows(self, statement: str, *values: object) -> list[Any]:
        return await self._file.run(lambda connection: connection.execute(statement, values).fetchall())

    async def _changed(self, statement: str, *values: object) -> int:
        return await self._file.change(lambda connection: connection.execute(statement, values).rowcount)


@contextmanager
def store_of(what: str) -> Iterator[None]:
    """Around what a store is asked, or what opens a record.

    Raises:
        StoreDown: the store is away, or the record was sealed under a key that is not at hand.
    """
    try:
        yield
    except KeyStoreError:
        raise StoreDown(f"{what} cannot be reached at the moment.", retry_after=1) from None


async def keep_expiring(expire: Callable[[], Awaitable[None]], logger: str, event: str) -> NoReturn:
    """Goes on forgetting what is over, until it is cancelled; failures are logged under `event`."""
    while True:
        try:
            await expire()
        except Exception as error:
            structlog.get_logger(logger).warning(event, error=type(error).__name__)
        await asyncio.sleep(_EXPIRE_SECONDS)


def event_of(caller: Principal, request_id: str, action: Action, job_id: str) -> AuditEvent:
    """What a caller did to a job, for the audit trail."""
    return AuditEvent(
        action, token_id=caller.token_id, tenant=caller.tenant, request_id=request_id, job_id=job_id
    )
