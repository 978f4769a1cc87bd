"""Where a Redis is and how to log in, read from a URL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.asyncio.connection import Connection, SSLConnection

Topology = Literal["single", "sentinel", "cluster"]

_TOPOLOGIES: dict[str, Topology] = {"": "single", "sentinel": "sentinel", "cluster": "cluster"}
_DEFAULT_PORTS: dict[Topology, int] = {"single": 6379, "sentinel": 26379, "cluster": 6379}
_TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_USAGE = (
    "not a Redis URL: use redis[s]://[user:password@]host[:port][/db],"
    " redis[s]+sentinel://host[:port],...[:port]/service or redis[s]+cluster://host[:port],..."
)


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """What a URL says.

    Attributes:
        topology: a server, a service that Sentinels watch, or a cluster.
        endpoints: host and port of the server, of the Sentinels, or of some of the cluster's nodes.
        service: the name that the Sentinels know the primary by.
        must_confirm: a server that cannot confirm that a change is on disk is refused
            (`durability=aof`); otherwise the confirmation is used where there is one.
        replicas: how many replicas have to confirm a change too.
        options: credentials, database and certificates; kept out of repr.
    """

    topology: Topology
    endpoints: tuple[tuple[str, int], ...]
    service: str
    must_confirm: bool
    replicas: int
    tls: bool
    options: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """What messages call it."""
        return "redis " + ",".join(f"{host}:{port}" for host, port in self.endpoints)

    @property
    def connection_class(self) -> type[Connection]:
        """Plain or TLS; certificates and host names are always checked."""
        return SSLConnection if self.tls else Connection

    @classmethod
    def parse(cls, url: str) -> "RedisAddress":
        """Reads a URL: see the operations guide for its forms.

        Raises:
            ValueError: it is not one; the message does not repeat the credentials.
        """
        scheme, separator, rest = url.partition("://")
        transport, _, suffix = scheme.partition("+")
        if not separator or transport not in ("redis", "rediss") or suffix not in _TOPOLOGIES:
            raise ValueError(_USAGE)
        topology, tls = _TOPOLOGIES[suffix], transport == "rediss"
        location, _, query_text = rest.partition("?")
        authority, _, path_text = location.partition("/")
        credentials, _, hosts = authority.rpartition("@")
        path = path_text.split("/")
        service = unquote(path.pop(0)) if topology == "sentinel" else ""
        endpoints = tuple(_endpoint(host, _DEFAULT_PORTS[topology]) for host in hosts.split(","))
        if (topology == "single" and len(endpoints) > 1) or (topology == "sentinel" and not service):
            raise ValueError(_USAGE)
        query = dict(parse_qsl(query_text))
        options = _options(credentials, "/".join(path), query, tls=tls, cluster=topology == "cluster")
        durability, replicas = query.pop("durability", "auto"), query.pop("replicas", "0")
        if query:
            known = ", ".join(("durability", "replicas", *_TLS_OPTIONS))
            # Not by its name, which is a part of the password where that has a question mark.
            raise ValueError(f"unknown option in the Redis URL: there are {known}")
        if durability not in ("auto", "aof") or not replicas.isdecimal():
            raise ValueError("in the Redis URL, durability is auto or aof and replicas is a number")
        must_confirm = durability == "aof"
        return cls(topology, endpoints, service, must_confirm, int(replicas), tls, options)


def _endpoint(text: str, default_port: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port or default_port
    except ValueError as error:
        raise ValueError(_USAGE) from error
    if not host:
        raise ValueError(_USAGE)
    return host, port


def _options(
    credentials: str, database: str, query: dict[str, str], *, tls: bool, cluster: bool
) -> dict[str, Any]:
    options: dict[str, Any] = {name: query.pop(name) for name in _TLS_OPTIONS if name in query}
    if options and not tls:
        raise ValueError("certificates in the Redis URL need rediss://")
    username, _, password = credentials.partition(":")
    if username:
        options["username"] = unquote(username)
    if password:
        options["password"] = unquote(password)
    if database:
        if cluster or not database.isdecimal():
            raise ValueError(_USAGE)
        options["db"] = int(database)
    return options
