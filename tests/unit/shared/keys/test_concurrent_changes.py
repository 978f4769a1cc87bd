"""What changes while the store answers is no step back in time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.stores.key_store_errors import RecordRolledBack
from ttmark.shared.vault.stores.sqlite_store import SqliteStore
from ttmark.shared.vault.stores.store import RecordStore, Stored

T = TypeVar("T")


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


async def test_what_is_changed_or_made_while_records_are_listed_is_neither_rolled_back_nor_gone(
    late: Meanwhile, rings: Rings, profile: Profile
) -> None:
    reader, writer = rings
    await writer.create("a", tenant="t", profile=profile)

    async def change() -> None:
        await writer.rotate("a")
        await writer.create("b", tenant="t", profile=profile)

    late.happens = "scan", change
    keys, problems = await reader.open_all()
    assert ([(key.key_id, key.epoch) for key in keys.values()], problems) == ([("a", 1)], {})
    assert (await reader.info("a")).epoch == 2


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
