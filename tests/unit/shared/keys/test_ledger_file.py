"""The ledger that outlives the process."""

import errno
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from ttmark.services.cli.key_store import KeyStore, run
from ttmark.services.composition.key_access import KeyAccess
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.events import drop_event
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault import ledger as ledger_module
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.ledger import Ledger, LedgerFile, ledger_path
from ttmark.shared.vault.stores.key_store_errors import InvalidToken, KeyStoreError, RecordRolledBack
from ttmark.shared.vault.stores.store import RecordStore
from ttmark.shared.whole_file import NotWritten


def ring_with_memory(store: RecordStore, kek: KeyEncryptionKey, path: Path) -> KeyRing:
    return KeyRing(store, kek, ledger=LedgerFile(path))


def empty(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM records")
    connection.close()


async def test_processes_that_share_a_ledger_keep_the_latest_of_each(store, kek, profile, tmp_path):
    ledger = tmp_path / "ledger"
    first, second = (ring_with_memory(store, kek, ledger) for _ in range(2))
    await first.create("a", tenant="t", profile=profile)
    await second.create("b", tenant="t", profile=profile)
    await first.rotate("a")
    empty(tmp_path / "keys.db")
    _, problems = await ring_with_memory(store, kek, ledger).open_all()
    assert set(problems) == {"a", "b"}
    assert "epoch 2" in str(problems["a"])
    with pytest.raises(RecordRolledBack, match="is gone"):
        await ring_with_memory(store, kek, ledger).create("a", tenant="t", profile=profile)


async def test_the_file_is_its_owner_s_alone_and_is_not_written_without_need(store, kek, profile, tmp_path):
    (tmp_path / "state").mkdir()
    ledger = tmp_path / "state" / "ledger"
    ring = ring_with_memory(store, kek, ledger)
    await ring.create("k", tenant="t", profile=profile)
    assert modes(ledger) == {0o600}
    ledger.unlink()
    await ring.open("k")
    assert not ledger.exists()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder beside a store; the ledger is where it is by default."""
    monkeypatch.delenv("TTMARK_LEDGER_FILE", raising=False)
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("TTMARK_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("TTMARK_STORE_URL", f"sqlite:///{tmp_path / 'keys.db'}")
    monkeypatch.setenv("TTMARK_KEK", "01" * 32)
    return tmp_path / "state"


def put_back(database: Path, content: bytes) -> None:
    for leftover in database.parent.glob(f"{database.name}*"):
        leftover.unlink()
    database.write_bytes(content)


@asynccontextmanager
async def operator_of_the_store() -> AsyncIterator[KeyStore]:
    """What a command on keys and tokens works on."""
    settings = KeyStoreSettings()
    store = settings.open_store()
    yield KeyStore(store, settings.load_kek(), settings.open_ledger(), drop_event)
    await store.close()


def cold_start() -> KeyAccess:
    return KeyAccess.open(
        DetectionSettings(), CollectorRegistry(), service="detect", port=1, max_age_seconds=60
    )


@pytest.mark.parametrize("seen_by", ["service", "command"])
async def test_a_revoked_token_is_refused_by_a_cold_start_after_a_rollback_of_the_store(
    state: Path, tmp_path: Path, seen_by: str
) -> None:
    database = tmp_path / "keys.db"
    async with operator_of_the_store() as operator:
        token, record = await operator.registry.create(tenant="a", scopes=frozenset({Scope.DETECT}))
    before = database.read_bytes()
    first = cold_start()
    await first.tokens.authenticate(token)
    async with operator_of_the_store() as operator:
        registry = (
            operator.registry if seen_by == "command" else TokenRegistry(operator.records, operator.kek)
        )
        await registry.revoke(record.token_id)
    if seen_by == "service":
        with pytest.raises(InvalidToken):
            await cold_start().tokens.authenticate(token)
    put_back(database, before)
    with pytest.raises(RecordRolledBack, match=r"remove .*ledger-.*json and start again"):
        await cold_start().tokens.authenticate(token)


def test_each_store_has_a_ledger_of_its_own_whoever_logs_in(state: Path) -> None:
    paths = [
        ledger_path(state, url)
        for url in (
            "redis://gen:one@store:6379/0",
            "redis://detect:two@store:6379/0?durability=aof",
            "redis://store:6379/1",
            "redis+sentinel://a,b/main",
            "sqlite:///keys.db",
            f"sqlite:///{Path('keys.db').resolve()}",
        )
    ]
    assert paths[0] == paths[1]
    assert paths[4] == paths[5]
    assert len(set(paths)) == 4
    assert {path.parent for path in paths} == {state}


def test_the_name_none_keeps_no_ledger(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(KeyStoreSettings().open_ledger(), LedgerFile)
    monkeypatch.setenv("TTMARK_LEDGER_FILE", "none")
    assert type(KeyStoreSettings().open_ledger()) is Ledger


def modes(ledger: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in ledger.parent.iterdir()}


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"a": 1}'])
def test_a_damaged_ledger_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger").write_bytes(content)
    with pytest.raises(KeyStoreError, match="restore or remove it"):
        LedgerFile(tmp_path / "ledger")


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The ledger's disk is full."""
    with monkeypatch.context() as fault:

        def full(*_: object, **__: object) -> None:
            raise NotWritten(errno.ENOSPC, os.strerror(errno.ENOSPC), "ledger")

        fault.setattr(ledger_module, "write_whole", full)
        yield fault


async def test_while_the_ledger_cannot_be_written_no_token_is_locked_out(store, kek, tmp_path, away):
    told: list[str] = []
    ledger = LedgerFile(tmp_path / "ledger", told.append)
    clock = [0.0]
    registry = TokenRegistry(store, kek, ledger=ledger, monotonic=lambda: clock[0])
    operator = TokenRegistry(store, kek)
    known, _ = await operator.create(tenant="a", scopes=frozenset({Scope.DETECT}))
    await registry.authenticate(known)
    new, record = await operator.create(tenant="a", scopes=frozenset({Scope.DETECT}))
    for _ in range(3):
        clock[0] += 1000.0  # longer than what is known outlives the store
        for token in (new, known):
            await registry.authenticate(token)
    assert ledger.unsaved == 2
    assert len(told) == 1
    assert f"cannot write the ledger {tmp_path}/ledger: No space left on device" in told[0]

    await operator.revoke(record.token_id)
    clock[0] += 3
    with pytest.raises(InvalidToken):
        await registry.authenticate(new)
    away.undo()
    clock[0] += 3
    await registry.authenticate(known)
    assert ledger.unsaved == 0
    kept = LedgerFile(tmp_path / "ledger")
    assert (seen := kept.sighting("token", record.token_id)) is not None
    assert seen.epoch == 2


async def test_what_went_back_in_time_is_refused_while_the_ledger_cannot_be_written(
    store: RecordStore, kek: KeyEncryptionKey, profile: Profile, tmp_path: Path, away: pytest.MonkeyPatch
) -> None:
    ring = ring_with_memory(store, kek, tmp_path / "ledger")
    await ring.create("k", tenant="t", profile=profile)
    before = await store.get("key", "k")
    assert before is not None
    await ring.rotate("k")
    await store.put("key", "k", before.payload, expected_revision=2)
    with pytest.raises(RecordRolledBack, match="epoch 1 in the store, 2 seen before"):
        await ring.open("k")


async def test_a_ledger_that_is_damaged_while_it_is_in_use_stays_and_stops_nothing(
    store: RecordStore, kek: KeyEncryptionKey, profile: Profile, tmp_path: Path
) -> None:
    told: list[str] = []
    ring = KeyRing(store, kek, ledger=LedgerFile(tmp_path / "ledger", told.append))
    (tmp_path / "ledger").write_bytes(b"{")
    await ring.create("k", tenant="t", profile=profile)
    await ring.open("k")
    assert (tmp_path / "ledger").read_bytes() == b"{"
    assert "restore or remove it" in told[0]


def test_a_command_says_that_the_ledger_cannot_be_written(state, capsys, away):
    async def create(store: KeyStore) -> None:
        await store.registry.create(tenant="a", scopes=frozenset({Scope.DETECT}))

    run(create)
    assert capsys.readouterr().err.startswith(f"ttmark: cannot write the ledger {state}/ledger-")
