"""Counters that are forgotten after a while: the one thing that rate limits keep."""

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from shared.keys.errors import StoreUnavailable

_MOST_COUNTERS = 100_000


class Counters(Protocol):
    """Named integers that start at zero."""

    async def add(self, amounts: Mapping[str, int], *, lifetime_seconds: float) -> dict[str, int]:
        """Adds to each counter and gives the sums; each is forgotten `lifetime_seconds` after its last use.

        Raises:
            StoreUnavailable: the counters cannot be reached.
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
        if self._monotonic() >= self._retry_at:
            try:
                sums = await self._shared.add(amounts, lifetime_seconds=lifetime_seconds)
            except StoreUnavailable:
                self._retry_at = self._monotonic() + self._retry_seconds
            else:
                self._retry_at = 0.0
                return sums
        return await self._local.add(amounts, lifetime_seconds=lifetime_seconds)

    async def close(self) -> None:
        """Closes the shared ones."""
        await self._shared.close()
