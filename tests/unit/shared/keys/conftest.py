"""A SQLite store, a key-encryption key and a profile for the tests of everything above the store."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ttmark.services.settings.store import open_store
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.signed_files.signed_file import CaseKey
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.store import RecordStore


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kek() -> KeyEncryptionKey:
    return KeyEncryptionKey(bytes(range(32)))


@pytest.fixture
def profile() -> Profile:
    return Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": "ab" * 32})


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RecordStore]:
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    yield store
    await store.close()


@pytest.fixture
def ring(store: RecordStore, kek: KeyEncryptionKey) -> KeyRing:
    return KeyRing(store, kek)


KEK = bytes(range(32))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a store, a folder for records and a case key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TTMARK_STORE_URL", f"sqlite:///{tmp_path / 'keys.db'}")
    monkeypatch.setenv("TTMARK_KEK", KEK.hex())
    (tmp_path / "audit").mkdir(exist_ok=True)
    monkeypatch.setenv("TTMARK_AUDIT_FOLDER", str(tmp_path / "audit"))
    key = CaseKey.generate()
    (tmp_path / "case.key").write_text(key.pem())
    (tmp_path / "case.pem").write_text(key.public.pem())
    monkeypatch.setenv("TTMARK_CASE_KEY_FILE", str(tmp_path / "case.key"))
    return tmp_path
