"""Where a Redis is and how to log in, read from a URL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio.connection import Connection, SSLConnection, parse_url

_DEFAULT_PORT = 6379
_QUERY_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """`options` hold the credentials and stay out of repr; `name` is what messages show."""

    name: str
    connection_class: type[Connection]
    options: Mapping[str, Any] = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "RedisAddress":
        """Reads `redis[s]://[user:password@]host[:port][/db][?ssl_ca_certs=...]`.

        Raises:
            ValueError: it is not such a URL; the message does not repeat the password.
        """
        try:
            parts = urlsplit(url)
            options: dict[str, Any] = dict(parse_url(url))
            host, port = parts.hostname, parts.port or _DEFAULT_PORT
        except ValueError as error:
            raise ValueError("not a Redis URL: use redis://[user:password@]host[:port][/db]") from error
        if not host:
            raise ValueError("the Redis URL names no host")
        connection_class = options.pop("connection_class", Connection)
        known = ("host", "port", "db", "username", "password", *_QUERY_OPTIONS)
        unknown = sorted(options.keys() - set(known))
        if unknown:
            raise ValueError(f"unknown option in the Redis URL: {', '.join(unknown)}")
        if connection_class is not SSLConnection and any(name in options for name in _QUERY_OPTIONS):
            raise ValueError("certificates in the Redis URL need rediss://")
        return cls(f"redis {host}:{port}", connection_class, options)
