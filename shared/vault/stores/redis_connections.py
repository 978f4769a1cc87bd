"""Connections to Redis: where it is, from a URL, and a small pool used for one conversation at a time.

redis-py's own pool is not used: a connection whose conversation did not end in order (cancelled, timed
out, cut) must never serve another caller, who would read the reply to somebody else's command.
"""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.asyncio.connection import Connection, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, ReadOnlyError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

Topology = Literal["single", "sentinel", "cluster"]

_TOPOLOGIES: dict[str, Topology] = {"": "single", "sentinel": "sentinel", "cluster": "cluster"}
_DEFAULT_PORTS: dict[Topology, int] = {"single": 6379, "sentinel": 26379, "cluster": 6379}
_TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")
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
        sentinel_options: credentials that the Sentinels alone ask for; kept out of repr.
    """

    topology: Topology
    endpoints: tuple[tuple[str, int], ...]
    service: str
    must_confirm: bool
    replicas: int
    tls: bool
    options: Mapping[str, Any] = field(repr=False)
    sentinel_options: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        return "redis " + ",".join(f"{host}:{port}" for host, port in self.endpoints)

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
        sentinel_options = {
            name.removeprefix("sentinel_"): query.pop(name)
            for name in _SENTINEL_OPTIONS
            if name in query and topology == "sentinel"
        }
        durability, replicas = query.pop("durability", "auto"), query.pop("replicas", "0")
        if query:
            own = _SENTINEL_OPTIONS if topology == "sentinel" else ()
            known = ", ".join(("durability", "replicas", *_TLS_OPTIONS, *own))
            # Not by its name, which is a part of the password where that has a question mark.
            raise ValueError(f"unknown option in the Redis URL: there are {known}")
        if durability not in ("auto", "aof") or not replicas.isdecimal():
            raise ValueError("in the Redis URL, durability is auto or aof and replicas is a number")
        must_confirm = durability == "aof"
        return cls(topology, endpoints, service, must_confirm, int(replicas), tls, options, sentinel_options)


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


class _ClosesAtOnce(Connection):
    """By TLS, asyncio keeps a socket that was closed until the server says goodbye too, or for 30 s.

    redis-py waits for that, or leaves it behind; a busy server's silence then hides the first error.
    """

    async def disconnect(self, *args: Any, **kwargs: Any) -> None:
        if self._writer is not None:
            self._writer.close()  # says goodbye
            self._writer.transport.abort()
        await super().disconnect(*args, **kwargs)


class _ClosesTLSAtOnce(_ClosesAtOnce, SSLConnection):
    pass


Command = Sequence[str | bytes | int]


class Conversation:
    """A connection that serves one caller.

    The time limits are our own: redis-py sends under `asyncio.wait_for`, which on Python 3.11 may
    swallow the cancellation of the caller.
    """

    def __init__(self, connection: Connection, *, reply_seconds: float) -> None:
        self.connection = connection
        self._reply_seconds = reply_seconds

    async def ask(self, *commands: Command, seconds: float | None = None) -> list[Any]:
        """Sends the commands in one write and reads one reply for each.

        Raises:
            RedisError: the connection broke, the replies did not come in time, or a command was refused.
        """
        limit = self._reply_seconds if seconds is None else seconds
        try:
            async with asyncio.timeout(limit):
                await self.connection.send_packed_command(self.connection.pack_commands(commands))
                return [await self.connection.read_response(timeout=math.inf) for _ in commands]
        except TimeoutError as error:
            raise RedisTimeoutError(f"no reply within {limit:g} s") from error

    async def next_message(self, seconds: float) -> Any:
        """What the server sends of itself next, or None when it is silent for `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                # Only whole messages are taken from the buffer: giving up in between loses nothing.
                return await self.connection.read_response(timeout=math.inf, disconnect_on_error=False)
        except TimeoutError:
            return None


HASH_TAG = "{ttmark}"
"""Every name in Redis begins with it, so that in a cluster all of them lie in one slot, on one server."""

Ask = Callable[[tuple[str, int], Sequence[str]], Awaitable[Any]]
"""Sends a command to an endpoint on a connection of its own and gives the reply."""


async def locate(address: RedisAddress, ask: Ask) -> tuple[str, int]:
    """Host and port of the server to talk to.

    Raises:
        RedisError: nobody that was asked knows it; where nobody lets us in, a refusal.
    """
    if address.topology == "single":
        return address.endpoints[0]
    failed: list[RedisError] = []
    for endpoint in address.endpoints:
        try:
            if address.topology == "sentinel":
                return _primary(await ask(endpoint, ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.service)))
            slot = int(await ask(endpoint, ("CLUSTER", "KEYSLOT", HASH_TAG)))
            return _slot_owner(await ask(endpoint, ("CLUSTER", "SLOTS")), slot, endpoint)
        except RedisError as error:
            failed.append(error)
    if all(map(is_refusal, failed)):
        raise failed[-1]
    raise RedisConnectionError(f"no answer where the server is: {failed[-1]}")


def is_refusal(error: BaseException) -> bool:
    """Whether it is no use to try again: wrong credentials, or a certificate that does not fit."""
    if isinstance(error, AuthenticationError | AuthorizationError):
        return True
    return isinstance(error.__context__, ssl.SSLCertVerificationError)


def _primary(reply: Any) -> tuple[str, int]:
    if not reply:
        raise RedisConnectionError("the Sentinels know no service of that name")
    host, port = reply
    return host.decode(), int(port)


def _slot_owner(ranges: Any, slot: int, asked: tuple[str, int]) -> tuple[str, int]:
    for first, last, primary, *_ in ranges:
        if first <= slot <= last:
            # A node may name no address, or a question mark where it was given no host name.
            host = primary[0] if primary[0] not in (None, b"", b"?") else asked[0].encode()
            return host.decode(), int(primary[1])
    raise RedisConnectionError(f"the cluster has no server for slot {slot}")


class RedisConnections:
    """At most `size` connections to one address."""

    def __init__(
        self, address: RedisAddress, *, connect_seconds: float, reply_seconds: float, size: int
    ) -> None:
        self._address = address
        self._options: dict[str, Any] = {
            **address.options,
            "socket_connect_timeout": connect_seconds,
            "socket_timeout": None,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }
        self._connect_seconds = connect_seconds
        self._reply_seconds = reply_seconds
        self._slots = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._server: tuple[str, int] | None = None

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Conversation]:
        """A connection for one conversation; it is kept only if the block ends without an exception."""
        async with self._slots:
            connection = self._idle.pop() if self._idle else await self._connect()
            try:
                yield Conversation(connection, reply_seconds=self._reply_seconds)
            except BaseException:
                await connection.disconnect()
                raise
            self._idle.append(connection)

    async def forget(self) -> None:
        """Closes idle connections and looks for the server anew, after one turned out to be dead."""
        self._server = None
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.disconnect()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.disconnect()

    async def _connect(self) -> Connection:
        if self._server is None:
            self._server = await locate(self._address, self._ask)
        connection = await self._open(self._server)
        if self._address.topology == "sentinel":
            try:
                (role,) = await Conversation(connection, reply_seconds=self._reply_seconds).ask(("ROLE",))
                if role[0] != b"master":
                    raise ReadOnlyError("the server that the Sentinels named is no primary")
            except BaseException:
                await connection.disconnect()
                raise
        return connection

    async def _open(self, endpoint: tuple[str, int], **overrides: Any) -> Connection:
        host, port = endpoint
        options = {**self._options, **overrides}
        kind = _ClosesTLSAtOnce if self._address.tls else _ClosesAtOnce  # checks certificates and host names
        connection = kind(host=host, port=port, **options)
        try:
            async with asyncio.timeout(self._connect_seconds + self._reply_seconds):
                await connection.connect()  # type: ignore[no-untyped-call]
        except TimeoutError as error:
            await connection.disconnect()
            raise RedisTimeoutError(f"{host}:{port} does not let us in") from error
        except BaseException:
            await connection.disconnect()
            raise
        return connection

    async def _ask(self, endpoint: tuple[str, int], command: Command) -> Any:
        address = self._address
        if address.topology != "sentinel":
            return await self._ask_once(endpoint, command)
        # Sentinels have accounts of their own, the primary's, or none; and no databases.
        own = {"username": None, "password": None, "db": 0, **address.sentinel_options}
        try:
            return await self._ask_once(endpoint, command, **own)
        except AuthenticationError:
            if address.sentinel_options or "password" not in address.options:
                raise
            return await self._ask_once(endpoint, command, db=0)

    async def _ask_once(self, endpoint: tuple[str, int], command: Command, **overrides: Any) -> Any:
        connection = await self._open(endpoint, **overrides)
        try:
            (reply,) = await Conversation(connection, reply_seconds=self._reply_seconds).ask(command)
        finally:
            await connection.disconnect()
        return reply
