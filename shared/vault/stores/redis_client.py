"""Conversations with Redis that end in time, retries included."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from redis.exceptions import (
    AskError,
    BusyLoadingError,
    MovedError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable
from ttmark.shared.vault.stores.redis_connections import (
    Command,
    Conversation,
    RedisAddress,
    RedisConnections,
    is_refusal,
)

T = TypeVar("T")

_log = logging.getLogger(__name__)
_PASSING = (
    RedisConnectionError,
    RedisTimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    MovedError,
    AskError,
    OSError,
)


class RedisClient:
    """Runs conversations on pooled connections; each ends within `budget_seconds`.

    Changes are confirmed as the address asks for it. WAITAOF needs Redis 7.2 and an append-only file.
    """

    def __init__(
        self,
        address: RedisAddress,
        *,
        connect_seconds: float = 1.0,
        reply_seconds: float = 2.0,
        budget_seconds: float = 4.0,
        connections: int = 8,
    ) -> None:
        self._address = address
        self._wait_milliseconds = int(1000 * reply_seconds)
        self._warned = False
        self._budget_seconds = budget_seconds
        self._connections = RedisConnections(
            address, connect_seconds=connect_seconds, reply_seconds=reply_seconds, size=connections
        )

    async def run(self, work: Callable[[Conversation], Awaitable[T]]) -> T:
        """The result of `work`, which is repeated on a new connection when the old one fails.

        Raises:
            StoreUnavailable: the budget is spent, or the server refuses.
        """
        pause = 0.01
        last: Exception | None = None
        try:
            async with asyncio.timeout(self._budget_seconds):
                while True:
                    try:
                        async with self._connections.borrow() as conversation:
                            return await work(conversation)
                    except _PASSING as error:
                        if is_refusal(error):
                            raise
                        last = error
                    await self._connections.forget()
                    await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
                    pause = min(2 * pause, 0.5)
        except TimeoutError as error:
            reason = f": {last}" if last else ""
            raise StoreUnavailable(
                f"{self._address.name} did not answer within {self._budget_seconds:g} s{reason}"
            ) from error
        except RedisError as error:
            raise StoreUnavailable(f"{self._address.name} refused: {error}") from error

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Conversation]:
        """A connection for a conversation without a budget.

        Raises:
            StoreUnavailable: from the block, when the connection breaks.
        """
        try:
            async with self._connections.borrow() as conversation:
                yield conversation
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"{self._address.name}: {error}") from error

    async def ask_all(self, *commands: Command) -> list[Any]:
        """A reply for each of the commands, which are sent together. Raises as `run`."""
        return await self.run(lambda redis: redis.ask(*commands))

    async def ask(self, command: Command) -> Any:
        return (await self.ask_all(command))[0]

    async def confirmed(self, command: Command) -> Any:
        """The reply, once what it changed has reached the disk as far as the address asks for it."""

        async def ask(redis: Conversation) -> Any:
            (reply,) = await redis.ask(command)
            await self.confirm(redis)
            return reply

        return await self.run(ask)

    async def confirm(self, redis: Conversation) -> None:
        """Returns when the last change made on this connection is on disk, here and on enough replicas.

        Raises:
            RedisTimeoutError: it is not confirmed in time; whether it will last is unknown.
            StoreUnavailable: the address demands the confirmation and the server cannot give it.
        """
        command = ("WAITAOF", 1, self._address.replicas, self._wait_milliseconds)
        try:
            ((local, replicas),) = await redis.ask(command, seconds=2 * self._wait_milliseconds / 1000)
        except ResponseError as error:
            self._refused(error)
            return
        if local < 1 or replicas < self._address.replicas:
            raise RedisTimeoutError(f"a change was not confirmed on disk within {self._wait_milliseconds} ms")

    def _refused(self, error: ResponseError) -> None:
        reason = f"{self._address.name} cannot confirm that changes are on disk ({error})"
        if self._address.must_confirm:
            raise StoreUnavailable(f"{reason}; it needs Redis 7.2 and appendonly yes") from error
        if not self._warned:
            self._warned = True
            _log.warning("%s: a crash of the server may lose acknowledged changes", reason)

    async def close(self) -> None:
        await self._connections.close()


@cache
def _text(file: Path) -> str:
    return file.read_text()


def script_command(file: Path, function: str, names: Sequence[str], *values: str | bytes | int) -> Command:
    """A function of a file of Lua, with the keys `names` and the arguments `values`."""
    return ("EVAL", _text(file), len(names), *names, *values, function)
