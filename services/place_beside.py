"""Where a service keeps what it has beside its keys."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from ttmark.shared.vault.redis_client import RedisClient


def place_beside(url: str, file: str) -> "RedisClient | Path":
    """The Redis of the key store that a URL names, or the path of `file` in the folder of the store's file.

    Nothing is connected to before the first call.

    Raises:
        ValueError: the URL names no store.
    """
    parts = urlsplit(url)
    if parts.scheme.partition("+")[0] in ("redis", "rediss"):
        from ttmark.shared.vault.redis_address import RedisAddress
        from ttmark.shared.vault.redis_client import RedisClient

        return RedisClient(RedisAddress.parse(url))
    if parts.scheme == "sqlite" and len(parts.path) > 1:
        return Path(unquote(parts.path[1:])).with_name(file)
    raise ValueError("jobs and cases are kept beside the key store, whose URL names none")
