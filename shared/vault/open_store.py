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
    parts = urlsplit(url)
    if parts.scheme.partition("+")[0] in ("redis", "rediss"):
        # Imported where they are used: Redis' library takes longer to import than SQLite's to open a store.
        from ttmark.shared.vault.redis_address import RedisAddress
        from ttmark.shared.vault.redis_client import RedisClient
        from ttmark.shared.vault.redis_store import RedisStore

        return RedisStore(RedisClient(RedisAddress.parse(url)))
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        return SqliteStore(Path(unquote(parts.path[1:])))
    raise ValueError("the key store is a URL: sqlite:///path, redis://host:port or rediss://host:port")
