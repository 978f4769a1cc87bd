"""The store that a URL names."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from shared.keys.redis_address import RedisAddress
from shared.keys.redis_store import RedisStore
from shared.keys.sqlite_store import SqliteStore
from shared.keys.store import RecordStore


def open_store(url: str) -> RecordStore:
    """`sqlite:///relative/path`, `sqlite:////absolute/path`, or what `RedisAddress.parse` reads.

    Nothing is connected to before the first call.

    Raises:
        ValueError: anything else.
    """
    parts = urlsplit(url)
    if parts.scheme.partition("+")[0] in ("redis", "rediss"):
        return RedisStore(RedisAddress.parse(url))
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        return SqliteStore(Path(unquote(parts.path[1:])))
    raise ValueError("the key store is a URL: sqlite:///path, redis://host:port or rediss://host:port")
