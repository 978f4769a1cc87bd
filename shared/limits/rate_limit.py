"""A limit on what one caller may do in a while, across all replicas that share its counters."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from ttmark.shared.limits.counters import Counters


@dataclass(frozen=True, slots=True)
class Grant:
    """Units that were granted, and the counter of the window that they were taken from."""

    counter: str
    units: int


NOTHING = Grant("", 0)
"""What is granted where nothing is limited."""


class RateLimiter:
    """At most so many units in any `window_seconds`, by the sliding-window approximation.

    Two counters per caller: the current window's and the previous one's, which is weighted by the share
    of it that lies within the last `window_seconds`. What is refused does not count.
    """

    def __init__(
        self, counters: Counters, *, window_seconds: float, now: Callable[[], float] = time.time
    ) -> None:
        if window_seconds <= 0:
            raise ValueError("a rate limit needs a positive window")
        self._counters = counters
        self._window = window_seconds
        self._now = now

    async def admit(self, caller: str, cost: int = 1, *, limit: int) -> float | None:
        """None when `cost` units are granted, else the seconds after which to try again. Raises as `take`."""
        taken = await self.take(caller, cost, limit=limit)
        return None if isinstance(taken, Grant) else taken

    async def take(self, caller: str, cost: int = 1, *, limit: int) -> Grant | float:
        """A grant of `cost` units, or the seconds after which to try again.

        More than the whole limit counts as that: it is granted when nothing else was used lately.

        Raises:
            ValueError: the cost is negative, or the limit is not positive.
            StoreUnavailable: the counters cannot be reached.
        """
        if cost < 0 or limit < 1:
            raise ValueError(f"a cost of {cost} does not go with a limit of {limit}")
        cost = min(cost, limit)
        index, elapsed = divmod(self._now(), self._window)
        current, previous = (self._name(caller, number) for number in (index, index - 1))
        sums = await self._counters.add({current: cost, previous: 0}, lifetime_seconds=2 * self._window)
        used, before = sums[current] - cost, sums[previous]
        weight = 1 - elapsed / self._window
        if used + cost + before * weight <= limit:
            return Grant(current, cost)
        await self._subtract(current, cost)
        return self._wait(used, before, limit - cost, elapsed)

    async def settle(self, grant: Grant, *, used: int) -> None:
        """Gives back what was not used, in the window that it was taken from. Raises StoreUnavailable."""
        if 0 <= used < grant.units:
            await self._subtract(grant.counter, grant.units - used)

    async def _subtract(self, counter: str, units: int) -> None:
        """Never below zero: the counter may be forgotten, or another store's by now."""
        lifetime = 2 * self._window
        left = (await self._counters.add({counter: -units}, lifetime_seconds=lifetime))[counter]
        if left < 0:
            await self._counters.add({counter: min(units, -left)}, lifetime_seconds=lifetime)

    @staticmethod
    def _name(caller: str, index: float) -> str:
        return f"rate:{caller}:{int(index)}"

    def _wait(self, used: int, before: int, room: int, elapsed: float) -> float:
        if used <= room:
            # Enough of the previous window has to slide out.
            return self._window * (1 - (room - used) / before) - elapsed
        # The current window becomes the previous one, and enough of it has to slide out.
        return self._window - elapsed + self._window * (1 - room / used)
