"""What only the embedded store has to get right: several processes open its file."""

import asyncio
from pathlib import Path

from ttmark.shared.vault.sqlite_store import SqliteStore


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_closed_store_leaves_one_file_that_holds_everything(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "keys.db")
    await store.put("key", "a", b"x", expected_revision=0)
    assert "keys.db-wal" in names(tmp_path)
    await store.close()
    await store.close()
    assert names(tmp_path) == ["keys.db"]


async def test_clients_that_open_a_new_file_at_the_same_time_all_get_on(tmp_path: Path) -> None:
    """Without waiting for each other about one of 800 was told that the file is locked."""
    for attempt in range(60):
        (tmp_path / str(attempt)).mkdir()
        stores = [SqliteStore(tmp_path / str(attempt) / "keys.db") for _ in range(12)]
        await asyncio.gather(*(store.ping() for store in stores))
        for store in stores:
            await store.close()
