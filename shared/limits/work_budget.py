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

    async def take(self, tenant: str, units: int) -> Grant | float:
        """The work that is granted, or the seconds after which to try again.

        More than a whole minute's budget counts as that: it is granted when nothing else was used lately.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """
        return await self._limiter.take(
            f"{self._service}.work:{tenant}", min(units, self.per_minute), limit=self.per_minute
        )

    async def settle(self, grant: Grant, *, used: int) -> None:
        """Gives back work that was granted and not done.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """
        await self._limiter.give_back(grant, grant.units - used)
