"""A limit on what one caller may do in a while, across all replicas that share its counters."""

import time
from collections.abc import Callable

from shared.keys.counters import Counters


class RateLimiter:
    """At most `limit` units in any `window_seconds`, by the sliding-window approximation.

    Two counters per caller: the current window's and the previous one's, which is weighted by the share
    of it that lies within the last `window_seconds`. What is refused does not count.
    """

    def __init__(
        self,
        counters: Counters,
        *,
        limit: int,
        window_seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        if limit < 1 or window_seconds <= 0:
            raise ValueError("a rate limit needs a positive limit and window")
        self._counters = counters
        self._limit = limit
        self._window = window_seconds
        self._now = now

    async def admit(self, caller: str, cost: int = 1) -> float | None:
        """None when `cost` units are granted, else the seconds after which to try again.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """
        index, elapsed = divmod(self._now(), self._window)
        current, previous = (f"rate:{caller}:{int(number)}" for number in (index, index - 1))
        sums = await self._counters.add({current: cost, previous: 0}, lifetime_seconds=2 * self._window)
        used, before = sums[current] - cost, sums[previous]
        weight = 1 - elapsed / self._window
        if used + cost + before * weight <= self._limit:
            return None
        await self._counters.add({current: -cost}, lifetime_seconds=2 * self._window)
        return self._wait(used, before, cost, elapsed)

    def _wait(self, used: int, before: int, cost: int, elapsed: float) -> float:
        room = self._limit - cost
        if used <= room:
            # Enough of the previous window has to slide out.
            return self._window * (1 - (room - used) / before) - elapsed
        # The current window becomes the previous one, and enough of it has to slide out.
        return self._window - elapsed + self._window * (1 - max(room, 0) / used)
