"""What changes while a key-encryption key takes its time, as a remote one does, is no step back in time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.key_store_errors import RecordRolledBack
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.sqlite_store import SqliteStore
from ttmark.shared.vault.store import RecordStore, Stored

T = TypeVar("T")


class SlowKek(KeyEncryptionKey):
    """Unwraps only once it is let, where it is held."""

    __slots__ = ("held", "waiting")

    def __init__(self) -> None:
        super().__init__(bytes(32))
        self.held = asyncio.Event()
        self.held.set()
        self.waiting = asyncio.Event()

    async def unwrap(self, kek_id: str, wrapped: bytes, associated: bytes) -> bytes:
        self.waiting.set()
        await self.held.wait()
        return await super().unwrap(kek_id, wrapped, associated)


@pytest.fixture
async def slow() -> SlowKek:
    return SlowKek()


async def test_a_read_that_a_change_overtakes_is_no_rollback(store, slow, profile):
    ledger = Ledger()
    writer = KeyRing(store, slow, ledger=ledger)
    await writer.create("k", tenant="t", profile=profile)
    reader = KeyRing(store, slow, ledger=ledger)
    slow.held.clear()
    slow.waiting.clear()
    reading = asyncio.create_task(reader.open_all())
    await slow.waiting.wait()
    await writer.rotate("k")  # what it opened before is not unwrapped again
    slow.held.set()
    keys, problems = await reading
    assert problems == {}
    assert keys["k"].epoch == 1
    assert (await reader.info("k")).versions[-1].version == 2


class Meanwhile(SqliteStore):
    """Once, something happens between what a method does and its answer."""

    happens: tuple[str, Callable[[], Awaitable[object]]] | None = None

    async def get(self, kind: str, record_id: str) -> Stored | None:
        return await self._late("get", await super().get(kind, record_id))

    async def scan(self, kind: str) -> list[tuple[str, Stored]]:
        return await self._late("scan", await super().scan(kind))

    async def put(self, kind: str, record_id: str, payload: bytes, *, expected_revision: int) -> int:
        revision = await super().put(kind, record_id, payload, expected_revision=expected_revision)
        return await self._late("put", revision)

    async def _late(self, method: str, answer: T) -> T:
        if self.happens is not None and self.happens[0] == method:
            (_, happens), self.happens = self.happens, None
            await happens()
        return answer


@pytest.fixture
async def late(tmp_path: Path) -> AsyncIterator[Meanwhile]:
    store = Meanwhile(tmp_path / "keys.db")
    yield store
    await store.close()


Rings = tuple[KeyRing, KeyRing]


@pytest.fixture
def rings(late: Meanwhile, store: RecordStore, kek: KeyEncryptionKey) -> Rings:
    """Of one process: one whose store is overtaken, and one that overtakes."""
    ledger = Ledger()
    return KeyRing(late, kek, ledger=ledger), KeyRing(store, kek, ledger=ledger)


async def test_an_answer_that_a_change_overtakes_is_no_rollback(late, rings, profile):
    reader, writer = rings
    await writer.create("k", tenant="t", profile=profile)
    late.happens = "get", partial(writer.rotate, "k")
    assert len((await reader.info("k")).versions) == 1
    assert len((await reader.info("k")).versions) == 2


async def test_a_change_that_the_next_one_overtakes_is_done(late, rings, profile):
    first, second = rings
    late.happens = "put", partial(second.rotate, "k")
    await first.create("k", tenant="t", profile=profile)
    assert len((await first.info("k")).versions) == 2


async def test_a_record_that_is_made_while_others_are_listed_is_not_gone(late, rings, profile):
    reader, writer = rings
    await writer.create("a", tenant="t", profile=profile)
    late.happens = "scan", partial(writer.create, "b", tenant="t", profile=profile)
    keys, problems = await reader.open_all()
    assert (list(keys), problems) == (["a"], {})


async def test_an_answer_from_before_what_was_seen_before_is_a_rollback(late, rings, store, profile):
    """Also while somebody changes the record: that others write excuses only what was the latest then."""
    reader, writer = rings
    await writer.create("k", tenant="t", profile=profile)
    old = await store.get("key", "k")
    assert old is not None
    await writer.rotate("k")
    await store.put("key", "k", old.payload, expected_revision=2)
    late.happens = "get", partial(writer.create, "other", tenant="t", profile=profile)
    with pytest.raises(RecordRolledBack, match="epoch 1 in the store, 2 seen before"):
        await reader.info("k")
