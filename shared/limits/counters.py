"""Counters that are forgotten after a while: the one thing that limits keep."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from ttmark.shared.limits.local_spaces import LocalSpaces
from ttmark.shared.limits.variants import Inquiry, Refusal
from ttmark.shared.vault.key_store_errors import StoreUnavailable

T = TypeVar("T")

_MOST_COUNTERS = 100_000


class Counters(Protocol):
    """Named integers that start at zero, and a space for each tenant's questions to the detector."""

    async def add(self, amounts: Mapping[str, int], *, lifetime_seconds: float) -> dict[str, int]:
        """Adds to each counter and gives the sums; each is forgotten `lifetime_seconds` after its last use.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """

    async def ask(self, inquiry: Inquiry) -> Refusal | None:
        """Counts the questions of a request in their tenant's space; or none of them, and says why.

        Raises:
            StoreUnavailable: the space cannot be reached.
        """

    @property
    def shared(self) -> bool:
        """Whether other replicas count with them now; a single process is all replicas there are."""

    async def close(self) -> None:
        """Gives up connections."""


class LocalCounters:
    """Counters of this process alone, the `most` that were used last."""

    def __init__(
        self, *, most: int = _MOST_COUNTERS, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._monotonic = monotonic
        self._values: dict[str, tuple[int, float]] = {}  # in the order of their last use
        self._spaces = LocalSpaces()

    @property
    def shared(self) -> bool:
        """Whoever uses nothing else has one process."""
        return True

    async def add(self, amounts: Mapping[str, int], *, lifetime_seconds: float) -> dict[str, int]:
        """Adds in memory."""
        now = self._monotonic()
        sums = {}
        for name, amount in amounts.items():
            value, expires_at = self._values.pop(name, (0, 0.0))
            sums[name] = amount + (value if expires_at > now else 0)
            self._values[name] = (sums[name], now + lifetime_seconds)
        while len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return sums

    async def ask(self, inquiry: Inquiry) -> Refusal | None:
        """Asks in memory."""
        return self._spaces.ask(inquiry)

    async def close(self) -> None:
        """Nothing to give up."""


class FallbackCounters:
    """Shared counters while they can be reached, and this process's own while they cannot.

    After a failure the shared ones are left alone for `retry_seconds`, so that an outage slows down
    one request in a while and not each.
    """

    def __init__(
        self,
        counters: Counters,
        *,
        retry_seconds: float = 2.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shared = counters
        self._local = LocalCounters(monotonic=monotonic)
        self._retry_seconds = retry_seconds
        self._monotonic = monotonic
        self._retry_at = 0.0

    @property
    def shared(self) -> bool:
        """Whether the shared counters were reached, or not yet asked, the last time."""
        return self._retry_at == 0.0

    async def add(self, amounts: Mapping[str, int], *, lifetime_seconds: float) -> dict[str, int]:
        """Adds to the shared counters, or to the local ones."""
        return await self._run(lambda counters: counters.add(amounts, lifetime_seconds=lifetime_seconds))

    async def ask(self, inquiry: Inquiry) -> Refusal | None:
        """Asks in the shared space, or in the local one."""
        return await self._run(lambda counters: counters.ask(inquiry))

    async def _run(self, work: Callable[[Counters], Awaitable[T]]) -> T:
        if self._monotonic() >= self._retry_at:
            try:
                result = await work(self._shared)
            except StoreUnavailable:
                self._retry_at = self._monotonic() + self._retry_seconds
            else:
                self._retry_at = 0.0
                return result
        return await work(self._local)

    async def close(self) -> None:
        """Closes the shared ones."""
        await self._shared.close()


def open_counters(url: str) -> Counters:
    """Counters that all replicas with this store share; with SQLite, those of the process.

    While Redis is away each replica goes on with counters of its own.

    Raises:
        ValueError: the URL names no store.
    """
    if urlsplit(url).scheme.partition("+")[0] in ("redis", "rediss"):
        from ttmark.shared.limits.redis_counters import RedisCounters
        from ttmark.shared.vault.redis_address import RedisAddress

        return FallbackCounters(RedisCounters(RedisAddress.parse(url)))
    return LocalCounters()
