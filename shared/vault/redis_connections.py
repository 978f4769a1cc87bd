"""A small pool of Redis connections that are used for one conversation at a time.

redis-py's own pool is not used: a connection whose conversation did not end in order (cancelled, timed
out, cut) must never serve another caller, who would read the reply to somebody else's command.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio.connection import Connection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ttmark.shared.vault.redis_address import RedisAddress
from ttmark.shared.vault.redis_conversation import Command, Conversation
from ttmark.shared.vault.redis_location import locate


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
                await connection.disconnect(nowait=True)
                raise
            self._idle.append(connection)

    async def forget(self) -> None:
        """Closes idle connections and looks for the server anew, after one turned out to be dead."""
        self._server = None
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Closes idle connections in order."""
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
                await connection.disconnect(nowait=True)
                raise
        return connection

    async def _open(self, endpoint: tuple[str, int], **overrides: Any) -> Connection:
        host, port = endpoint
        options = {**self._options, **overrides}
        connection = self._address.connection_class(host=host, port=port, **options)
        try:
            async with asyncio.timeout(self._connect_seconds + self._reply_seconds):
                await connection.connect()  # type: ignore[no-untyped-call]
        except TimeoutError as error:
            await connection.disconnect(nowait=True)
            raise RedisTimeoutError(f"{host}:{port} does not let us in") from error
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def _ask(self, endpoint: tuple[str, int], command: Command) -> Any:
        is_sentinel = self._address.topology == "sentinel"
        # Sentinels have accounts of their own, or none, and no databases.
        overrides = {"username": None, "password": None, "db": 0} if is_sentinel else {}
        connection = await self._open(endpoint, **overrides)
        try:
            (reply,) = await Conversation(connection, reply_seconds=self._reply_seconds).ask(command)
        finally:
            await connection.disconnect(nowait=True)
        return reply
