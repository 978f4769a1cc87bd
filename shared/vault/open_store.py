"""The store that a URL names."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from ttmark.shared.vault.sqlite_store import SqliteStore
from ttmark.shared.vault.store import RecordStore


def open_store(url: str) -> RecordStore:
    """`sqlite:///relative/path`, `sqlite:////absolute/path`, or what `RedisAddress.parse` reads.

    Nothing is connected to before the first call.

    Raises:
        ValueError: anything else.
    """
    if url.partition("://")[0].partition("+")[0] in ("redis", "rediss"):
        # Imported where they are used: Redis' library takes longer to import than SQLite's to open a store.
        from ttmark.shared.vault.redis_address import RedisAddress
        from ttmark.shared.vault.redis_client import RedisClient
        from ttmark.shared.vault.redis_store import RedisStore

        return RedisStore(RedisClient(RedisAddress.parse(url)))
    path = sqlite_path(url)
    if path is None:
        raise ValueError("the key store is a URL: sqlite:///path, redis://host:port or rediss://host:port")
    return SqliteStore(path)


def sqlite_path(url: str) -> Path | None:
    """The file that a URL names; None where it names none."""
    try:
        parts = urlsplit(url)
    except ValueError:  # whose message repeats what may be a password
        return None
    if parts.scheme != "sqlite" or parts.netloc or len(parts.path) < 2:
        return None
    return Path(unquote(parts.path[1:]))
