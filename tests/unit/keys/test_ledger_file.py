"""The ledger that outlives the process."""

import sqlite3
from pathlib import Path

import pytest

from shared.keys import KeyEncryptionKey, KeyRing, KeyStoreError, LedgerFile, RecordRolledBack, RecordStore
from shared.schemas.profile import Profile


def ring_with_memory(store: RecordStore, kek: KeyEncryptionKey, path: Path) -> KeyRing:
    return KeyRing(store, kek, ledger=LedgerFile(path))


def empty(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM records")
    connection.close()


async def test_a_cold_start_notices_a_store_that_was_emptied(
    store: RecordStore, kek: KeyEncryptionKey, profile: Profile, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    await ring_with_memory(store, kek, ledger).create("k", tenant="t", profile=profile)
    empty(tmp_path / "keys.db")
    with pytest.raises(RecordRolledBack, match="is gone"):
        await ring_with_memory(store, kek, ledger).open("k")
    with pytest.raises(RecordRolledBack, match="is gone"):
        await ring_with_memory(store, kek, ledger).create("k", tenant="t", profile=profile)


async def test_a_cold_start_notices_a_replayed_record(
    store: RecordStore, kek: KeyEncryptionKey, profile: Profile, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    ring = ring_with_memory(store, kek, ledger)
    await ring.create("k", tenant="t", profile=profile)
    before = await store.get("key", "k")
    assert before is not None
    await ring.rotate("k")
    await store.put("key", "k", before.payload, expected_revision=2)
    with pytest.raises(RecordRolledBack, match="epoch 1 in the store, 2 seen before"):
        await ring_with_memory(store, kek, ledger).open("k")


async def test_processes_that_share_a_ledger_keep_the_latest_of_each(
    store: RecordStore, kek: KeyEncryptionKey, profile: Profile, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    first, second = (ring_with_memory(store, kek, ledger) for _ in range(2))
    await first.create("a", tenant="t", profile=profile)
    await second.create("b", tenant="t", profile=profile)
    await first.rotate("a")
    empty(tmp_path / "keys.db")
    _, problems = await ring_with_memory(store, kek, ledger).open_all()
    assert set(problems) == {"a", "b"}
    assert "epoch 2" in str(problems["a"])


async def test_the_file_is_its_owner_s_alone_and_is_not_written_without_need(
    store: RecordStore, kek: KeyEncryptionKey, profile: Profile, tmp_path: Path
) -> None:
    ledger = tmp_path / "state" / "ledger"
    ring = ring_with_memory(store, kek, ledger)
    await ring.create("k", tenant="t", profile=profile)
    assert modes(ledger) == {0o600}
    ledger.unlink()
    await ring.open("k")
    assert not ledger.exists()


def modes(ledger: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in ledger.parent.iterdir()}


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"a": 1}'])
def test_a_damaged_ledger_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger").write_bytes(content)
    with pytest.raises(KeyStoreError, match="restore or remove it"):
        LedgerFile(tmp_path / "ledger")


async def test_a_ledger_that_cannot_be_written_is_one_clear_line(
    store: RecordStore, kek: KeyEncryptionKey, profile: Profile, tmp_path: Path
) -> None:
    (tmp_path / "ledger.part").mkdir()
    ring = ring_with_memory(store, kek, tmp_path / "ledger")
    with pytest.raises(KeyStoreError, match="cannot write the ledger"):
        await ring.create("k", tenant="t", profile=profile)
