"""How much work a tenant may ask for in a minute, across all replicas that share the counters."""

import time
from collections.abc import Callable

from ttmark.shared.limits.counters import Counters
from ttmark.shared.limits.rate_limit import Grant, RateLimiter

_WINDOW_SECONDS = 60.0


class WorkBudget:
    """At most `per_minute` units of work for each tenant, whichever of its tokens asks.

    Raises:
        ValueError: `per_minute` is not positive.
    """

    def __init__(
        self, service: str, counters: Counters, *, per_minute: int, now: Callable[[], float] = time.time
    ) -> None:
        if per_minute < 1:
            raise ValueError("a budget needs a positive amount of work")
        self.per_minute = per_minute
        self._service = service
        self._limiter = RateLimiter(counters, window_seconds=_WINDOW_SECONDS, now=now)
        self.settle = self._limiter.settle

    async def take(self, tenant: str, units: int) -> Grant | float:
        """The work that is granted, or the seconds after which to try again. Raises as `RateLimiter.take`."""
        return await self._limiter.take(f"{self._service}.work:{tenant}", units, limit=self.per_minute)
