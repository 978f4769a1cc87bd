"""Which URLs name a store, what one says that is out of reach, and what the embedded one leaves on disk."""

import asyncio
import time
from pathlib import Path

import pytest

from ttmark.services.settings.store import open_store
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable
from ttmark.shared.vault.stores.redis_connections import RedisAddress
from ttmark.shared.vault.stores.sqlite_store import SqliteStore


@pytest.mark.parametrize(
    ("url", "endpoints"),
    [
        ("redis://h", [("h", 6379)]),
        ("redis://u:p%40@[::1]:6380/2", [("::1", 6380)]),
        ("redis+sentinel://a,b:5/keys", [("a", 26379), ("b", 5)]),
        ("rediss+cluster://a,b:5", [("a", 6379), ("b", 5)]),
    ],
)
def test_a_port_that_is_not_named_is_the_usual_one(url: str, endpoints: list[tuple[str, int]]) -> None:
    assert list(RedisAddress.parse(url).endpoints) == endpoints


async def test_three_slashes_are_relative_and_four_are_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    for url, path in (("sqlite:///a/k.db", "a/k.db"), (f"sqlite:///{tmp_path}/b%20c.db", "b c.db")):
        store = open_store(url)
        assert isinstance(store, SqliteStore)
        await store.put("key", "a", b"x", expected_revision=0)
        await store.close()
        assert (tmp_path / path).exists()


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


@pytest.mark.long
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://operator:hunter2@127.0.0.1:1", "127.0.0.1:1"),
        ("sqlite:///file/keys.db", "file"),
        ("sqlite:///.", "cannot be used|unable to open|directory"),
        ("sqlite:///file", "not a database"),
    ],
)
async def test_a_store_out_of_reach_is_one_clear_line_in_bounded_time(tmp_path, monkeypatch, url, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"not a database" * 100)
    store, begin = open_store(url), time.monotonic()
    with pytest.raises(StoreUnavailable, match=message) as caught:
        await store.ping()
    await store.close()
    assert time.monotonic() - begin < 5
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_a_closed_sqlite_store_leaves_one_file_that_holds_everything_for_its_owner_alone(tmp_path):
    store = SqliteStore(tmp_path / "keys.db")
    await store.put("key", "a", b"x", expected_revision=0)
    assert "keys.db-wal" in modes(tmp_path)
    assert set(modes(tmp_path).values()) == {0o600}
    await store.close()
    await store.close()
    assert modes(tmp_path) == {"keys.db": 0o600}


async def test_clients_that_open_a_new_file_at_the_same_time_all_get_on(tmp_path: Path) -> None:
    """Without waiting for each other about one of 800 was told that the file is locked."""
    for attempt in range(60):
        (tmp_path / str(attempt)).mkdir()
        stores = [SqliteStore(tmp_path / str(attempt) / "keys.db") for _ in range(12)]
        await asyncio.gather(*(store.ping() for store in stores))
        for store in stores:
            await store.close()


async def test_a_file_that_may_not_grow_says_that_the_disk_is_full(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "keys.db")
    await store.put("key", "a", b"x", expected_revision=0)
    await store._file.run(lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchone())
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await store.put("key", "b", bytes(1 << 20), expected_revision=0)
    await store.close()
