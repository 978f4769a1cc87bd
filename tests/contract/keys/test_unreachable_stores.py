"""Each way a store can be out of reach gives StoreUnavailable, one line, in bounded time."""

import time
from pathlib import Path

import pytest

from ttmark.shared.vault.key_store_errors import StoreUnavailable
from ttmark.shared.vault.store import open_store

PORT_NOBODY_LISTENS_ON = 1


async def test_a_redis_that_is_not_there_is_one_clear_line_without_the_password() -> None:
    store = open_store(f"redis://operator:hunter2@127.0.0.1:{PORT_NOBODY_LISTENS_ON}")
    begin = time.monotonic()
    with pytest.raises(StoreUnavailable) as caught:
        await store.ping()
    await store.close()
    assert time.monotonic() - begin < 5
    message = str(caught.value)
    assert f"127.0.0.1:{PORT_NOBODY_LISTENS_ON}" in message
    assert "\n" not in message
    assert "hunter2" not in message


async def test_a_folder_in_place_of_the_sqlite_file_is_one_clear_line(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}")
    with pytest.raises(StoreUnavailable, match=str(tmp_path)):
        await store.ping()
    await store.close()


async def test_a_file_that_is_not_sqlite_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "keys.db").write_bytes(b"not a database" * 100)
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    with pytest.raises(StoreUnavailable, match="not a database"):
        await store.ping()
    await store.close()


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in folder.iterdir()}


async def test_the_sqlite_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    await store.put("key", "a", b"x", expected_revision=0)
    found = modes(tmp_path)
    await store.close()
    assert found == {0o600}
