"""Which URLs name a store."""

from pathlib import Path

import pytest

from ttmark.shared.vault.key_store_errors import StoreUnavailable
from ttmark.shared.vault.redis_connections import RedisAddress
from ttmark.shared.vault.redis_store import RedisStore
from ttmark.shared.vault.sqlite_store import SqliteStore
from ttmark.shared.vault.store import open_store


@pytest.mark.parametrize(
    "url",
    [
        "redis://h",
        "redis://h:1/2",
        "redis://u:p%40@h",
        "rediss://h:1?ssl_ca_certs=/ca.pem",
        "redis://[::1]:6380",
    ],
)
def test_redis_urls_open_a_redis_store(url: str) -> None:
    assert isinstance(open_store(url), RedisStore)


@pytest.mark.parametrize(
    ("url", "endpoints"),
    [
        ("redis://h", [("h", 6379)]),
        ("redis+sentinel://a,b:5/keys", [("a", 26379), ("b", 5)]),
        ("rediss+cluster://a,b:5", [("a", 6379), ("b", 5)]),
    ],
)
def test_a_port_that_is_not_named_is_the_usual_one(url: str, endpoints: list[tuple[str, int]]) -> None:
    assert list(RedisAddress.parse(url).endpoints) == endpoints


@pytest.mark.parametrize(
    "url",
    [
        "",
        "keys.db",
        "sqlite://",
        "sqlite:///",
        "sqlite://host/path",
        "mysql://h",
        "redis://",
        "redis://h:x",
        "redis://h?ssl_ca_certs=/x",
        "redis://h?nonsense=1",
        "http://h",
    ],
)
def test_anything_else_is_refused_without_connecting(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        open_store(url)


async def test_three_slashes_are_relative_and_four_are_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    for url, path in (("sqlite:///a/k.db", "a/k.db"), (f"sqlite:///{tmp_path}/b%20c.db", "b c.db")):
        store = open_store(url)
        assert isinstance(store, SqliteStore)
        await store.put("key", "a", b"x", expected_revision=0)
        await store.close()
        assert (tmp_path / path).exists()


async def test_a_path_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = open_store(f"sqlite:///{tmp_path / 'file' / 'keys.db'}")
    with pytest.raises(StoreUnavailable):
        await store.ping()
    await store.close()
