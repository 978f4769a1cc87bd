"""Conversations with Redis that end in time, retries included."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    MovedError,
    ReadOnlyError,
    RedisError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ttmark.shared.vault.key_store_errors import StoreUnavailable
from ttmark.shared.vault.redis_address import RedisAddress
from ttmark.shared.vault.redis_connections import RedisConnections
from ttmark.shared.vault.redis_conversation import Conversation

T = TypeVar("T")

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
    """Runs conversations on pooled connections; each ends within `budget_seconds`."""

    def __init__(
        self,
        address: RedisAddress,
        *,
        connect_seconds: float = 1.0,
        reply_seconds: float = 2.0,
        budget_seconds: float = 4.0,
        connections: int = 8,
    ) -> None:
        self.address = address
        self.reply_seconds = reply_seconds
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
                        if _is_refusal(error):
                            raise
                        last = error
                    await self._connections.forget()
                    await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
                    pause = min(2 * pause, 0.5)
        except TimeoutError as error:
            reason = f": {last}" if last else ""
            raise StoreUnavailable(
                f"{self.address.name} did not answer within {self._budget_seconds:g} s{reason}"
            ) from error
        except RedisError as error:
            raise StoreUnavailable(f"{self.address.name} refused: {error}") from error

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
            raise StoreUnavailable(f"{self.address.name}: {error}") from error

    async def close(self) -> None:
        """Closes idle connections; those in use close with their conversation."""
        await self._connections.close()


def _is_refusal(error: BaseException) -> bool:
    """Whether it is no use to try again: wrong credentials, or a certificate that does not fit."""
    if isinstance(error, AuthenticationError | AuthorizationError):
        return True
    return isinstance(error.__context__, ssl.SSLCertVerificationError)
