"""Cases and a team's queue, which earlier releases kept beside the key store: found, exported, deleted."""

import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import structlog

from ttmark.shared.vault.envelope import open_record
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.key_store_errors import KeyStoreError
from ttmark.shared.vault.redis_client import RedisClient
from ttmark.shared.vault.redis_connections import HASH_TAG, RedisAddress
from ttmark.shared.vault.sqlite_store import SqliteFile
from ttmark.shared.vault.store import sqlite_path
from ttmark.shared.whole_file import write_whole

_log = structlog.stdlib.get_logger("ttmark.cases")


@dataclass(frozen=True, slots=True)
class Kept:
    """A record as it lies there.

    Attributes:
        name: what `sealed` is bound to.
        is_case: else it is an item of the queue.
        expires_at: Unix time from which it was to be forgotten.
    """

    tenant: str
    record_id: str
    name: bytes
    sealed: bytes
    expires_at: float
    is_case: bool


def _case(case_id: str, tenant: str, sealed: bytes, expires_at: float) -> Kept:
    return Kept(tenant, case_id, f"ttmark case {tenant} {case_id}".encode(), sealed, expires_at, True)


def _item(item_id: str, tenant: str, state: str, version: int, sealed: bytes, expires_at: float) -> Kept:
    name = f"ttmark queue {tenant} {item_id} {state} {version}"
    return Kept(tenant, item_id, name.encode(), sealed, expires_at, False)


def _rows(connection: sqlite3.Connection, statement: str) -> list[Any]:
    return connection.execute(statement).fetchall()


class KeptInFiles:
    """In two SQLite files in the folder of the key store's. Methods raise StoreUnavailable."""

    _READ = (
        ("cases.db", "SELECT case_id, tenant, sealed, expires_at FROM cases", _case),
        ("queue.db", "SELECT item_id, tenant, state, version, sealed, expires_at FROM items", _item),
    )

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def places(self) -> list[str]:
        """Where something lies."""
        return [str(self._folder / name) for name, *_ in self._READ if (self._folder / name).exists()]

    async def read(self) -> list[Kept]:
        """All records, those whose time is over too."""
        found = []
        for name, statement, made in self._READ:
            if (path := self._folder / name).exists():
                file = SqliteFile(str(path), path, ())
                try:
                    rows = await file.run(partial(_rows, statement=statement))
                finally:
                    await file.close()
                found += [made(*row) for row in rows]
        return found

    async def delete(self) -> None:
        """All of it."""
        for name, *_ in self._READ:
            for end in ("-wal", "-shm", ""):
                (self._folder / f"{name}{end}").unlink(missing_ok=True)

    async def close(self) -> None:
        """Nothing stays open."""


_CASE, _ITEM = f"{HASH_TAG}:case:", f"{HASH_TAG}:queue:item:"
_KINDS = (_CASE, f"{HASH_TAG}:cases:", f"{HASH_TAG}:queue:")
# There as long as anything is.
_SIGNS = (f"{HASH_TAG}:cases:bytes", f"{HASH_TAG}:queue:expiry")
_AT_ONCE = 256


class KeptInRedis:
    """The same in the Redis of the key store."""

    def __init__(self, address: RedisAddress) -> None:
        self._redis = RedisClient(address)
        self._place = f"{HASH_TAG}:case* and {HASH_TAG}:queue* in {address.name}"

    async def places(self) -> list[str]:
        return [self._place] if await self._redis.ask(("EXISTS", *_SIGNS)) else []

    async def read(self) -> list[Kept]:
        names = await self._names()
        cases = [name for name in names if name.startswith(_CASE)]
        items = [name for name in names if name.startswith(_ITEM)]
        found = []
        async for name, (tenant, sealed, end) in self._fields(cases, "tenant", "sealed", "expires_at"):
            found.append(_case(name.removeprefix(_CASE), tenant.decode(), sealed, float(end)))
        fields = ("state", "version", "sealed", "expires_at")
        async for name, (state, version, sealed, end) in self._fields(items, *fields):
            tenant, _, item_id = name.removeprefix(_ITEM).rpartition(":")
            found.append(_item(item_id, tenant, state.decode(), int(version), sealed, float(end)))
        return found

    async def delete(self) -> None:
        names = sorted(await self._names(), key=lambda name: name in _SIGNS)
        for start in range(0, len(names), _AT_ONCE):
            await self._redis.confirmed(("DEL", *names[start : start + _AT_ONCE]))

    async def close(self) -> None:
        await self._redis.close()

    async def _names(self) -> list[str]:
        names, cursor = set[str](), b"0"
        while True:
            cursor, some = await self._redis.ask(("SCAN", cursor, "MATCH", f"{HASH_TAG}:*", "COUNT", 1000))
            names |= {name.decode() for name in some if name.decode().startswith(_KINDS)}
            if int(cursor) == 0:
                return sorted(names)

    async def _fields(self, names: Sequence[str], *fields: str) -> AsyncIterator[tuple[str, Any]]:
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            rows = await self._redis.ask_all(*(("HMGET", name, *fields) for name in some))
            for name, row in zip(some, rows, strict=True):
                if None not in row:  # it may be forgotten meanwhile
                    yield name, row


KeptBefore = KeptInFiles | KeptInRedis


def kept_beside(url: str) -> KeptBefore:
    """What lies beside the key store that a URL names. Nothing is connected to before the first call."""
    path = sqlite_path(url)
    return KeptInRedis(RedisAddress.parse(url)) if path is None else KeptInFiles(path.parent)


async def tell_where(url: str) -> None:
    """One line in the log of a service that finds something; a store that does not answer has no line."""
    kept = kept_beside(url)
    with suppress(KeyStoreError):
        if places := await kept.places():
            _log.warning("kept_by_earlier_release", where=places, what_to_do="ttmark case export-kept FOLDER")
    await kept.close()


@dataclass(frozen=True, slots=True)
class Opened:
    """What the records hold whose time is not over.

    Attributes:
        cases: signed files, as they were stored, by tenant and id.
        items: of the queue: who added each, what was checked, and who decided what.
        unreadable: why one does not open, each.
    """

    cases: dict[tuple[str, str], str]
    items: list[dict[str, Any]]
    unreadable: list[str]

    def write(self, folder: Path) -> None:
        """A new folder with `TENANT/ID.json` for each case and with `queue.jsonl`.

        Raises:
            OSError: it is there already, or cannot be written.
        """
        folder.mkdir()
        for (tenant, case_id), case in self.cases.items():
            (folder / tenant).mkdir(exist_ok=True)
            write_whole(folder / tenant / f"{case_id}.json", case.encode())
        write_whole(folder / "queue.jsonl", b"".join(orjson.dumps(item) + b"\n" for item in self.items))


async def open_all(records: Sequence[Kept], kek: KeyWrapper) -> Opened:
    """Opens them with whatever keys `kek` has."""
    opened = Opened({}, [], [])
    for one in records:
        if one.expires_at <= time.time():
            continue
        try:
            plain, _ = await open_record(kek, one.name, one.sealed)
        except (KeyStoreError, ValueError, KeyError) as error:
            opened.unreadable.append(f"{one.record_id} of {one.tenant}: {error}")
            continue
        fields = orjson.loads(plain)
        if one.is_case:
            opened.cases[one.tenant, one.record_id] = fields["case"]
        else:
            opened.items.append({"tenant": one.tenant, "id": one.record_id, **fields})
    return opened
