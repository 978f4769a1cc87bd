"""Commands and replies on one connection, each exchange within a time limit."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from redis.asyncio.connection import Connection
from redis.exceptions import TimeoutError as RedisTimeoutError

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
                return [await self._read() for _ in commands]
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

    async def _read(self) -> Any:
        return await self.connection.read_response(timeout=math.inf)
