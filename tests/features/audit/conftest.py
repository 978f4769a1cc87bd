"""A working directory, a store for heads, and a clock."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.shared.keys.conftest import KEK, Clock, place
from ttmark.services.features.audit.trail import Heads
from ttmark.services.settings.store import open_store
from ttmark.shared.vault.kek import KeyEncryptionKey

__all__ = ["KEK", "place"]


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
