"""A small pool of Redis connections that are used for one conversation at a time.

redis-py's own pool is not used: a connection whose conversation did not end in order (cancelled, timed
out, cut) must never serve another caller, who would read the reply to somebody else's command.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio.connection import Connection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from shared.keys.redis_address import RedisAddress

Command = tuple[str | bytes | int, ...]


class RedisConnections:
    """At most `size` connections to one address; every wait in them ends after `reply_seconds`."""

    def __init__(
        self, address: RedisAddress, *, connect_seconds: float, reply_seconds: float, size: int
    ) -> None:
        self._address = address
        self._options: dict[str, Any] = {
            **address.options,
            "socket_connect_timeout": connect_seconds,
            "socket_timeout": reply_seconds,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }
        self._slots = asyncio.Semaphore(size)
        self._idle: list[Connection] = []

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Connection]:
        """A connection for one conversation; it is kept only if the block ends without an exception."""
        async with self._slots:
            connection = self._idle.pop() if self._idle else self._address.connection_class(**self._options)
            try:
                await connection.connect()  # type: ignore[no-untyped-call]
                yield connection
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            self._idle.append(connection)

    async def drop_idle(self) -> None:
        """Closes the connections that nobody uses, after one of them turned out to be dead."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Closes the connections that nobody uses, in order."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.disconnect()


async def converse(connection: Connection, *commands: Command) -> list[Any]:
    """Sends the commands in one write and reads one reply for each.

    Raises:
        RedisError: the connection broke, no reply came in time, or the server refused a command.
    """
    await connection.send_packed_command(connection.pack_commands(commands))
    return [await connection.read_response() for _ in commands]


def one(replies: Sequence[Any]) -> Any:
    """The reply to the only command."""
    (reply,) = replies
    return reply
