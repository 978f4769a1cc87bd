"""A chain of a few records, a store for heads, and a clock."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ttmark.shared.audit.trail import Heads
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.store import open_store


class Calendar:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 22, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def go_on(self, **much: float) -> None:
        self.time += timedelta(**much)


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
async def heads(tmp_path: Path) -> AsyncIterator[Heads]:
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    yield Heads(store, KeyEncryptionKey(bytes(range(32))))
    await store.close()
