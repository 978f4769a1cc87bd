"""The store that a URL names, and the counters beside it."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from shared.keys.counters import Counters, FallbackCounters, LocalCounters
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
        # Imported where they are used: Redis' library takes longer to import than SQLite's to open a store.
        from shared.keys.redis_address import RedisAddress
        from shared.keys.redis_store import RedisStore

        return RedisStore(RedisAddress.parse(url))
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        return SqliteStore(Path(unquote(parts.path[1:])))
    raise ValueError("the key store is a URL: sqlite:///path, redis://host:port or rediss://host:port")


def open_counters(url: str) -> Counters:
    """Counters that all replicas with this store share; with SQLite, those of the process.

    While Redis is away each replica goes on with counters of its own.

    Raises:
        ValueError: the URL names no store.
    """
    if urlsplit(url).scheme.partition("+")[0] in ("redis", "rediss"):
        from shared.keys.redis_address import RedisAddress
        from shared.keys.redis_counters import RedisCounters

        return FallbackCounters(RedisCounters(RedisAddress.parse(url)))
    return LocalCounters()
