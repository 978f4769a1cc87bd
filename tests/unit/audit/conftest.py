"""A working directory, a store for heads, and a clock."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.keys.conftest import Clock
from ttmark.services.features.audit.segments import segments
from ttmark.services.features.audit.trail import Heads
from ttmark.services.settings.store import open_store
from ttmark.shared.cases.signed_file import CaseKey
from ttmark.shared.vault.kek import KeyEncryptionKey

KEK = bytes(range(32))


def records(folder: Path) -> list[dict[str, Any]]:
    """All records of all chains in a folder."""
    lines = [line for parts in segments(folder).values() for part in parts for line in part.lines()]
    return [json.loads(line) for line in lines]


def events(folder: Path) -> list[dict[str, Any]]:
    return [record["event"] for record in records(folder)]


class Calendar(Clock):
    def go_on(self, **much: float) -> None:
        self.seconds += timedelta(**much).total_seconds()


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
async def heads(tmp_path: Path) -> AsyncIterator[Heads]:
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    yield Heads(store, KeyEncryptionKey(KEK))
    await store.close()


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
