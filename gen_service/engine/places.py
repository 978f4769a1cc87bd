"""Who still gets a place when an engine is full, and how long a refused client should wait."""

import time
from collections import Counter

from ttmark.gen_service.engine.errors import Overloaded

_WEIGHT = 0.2
_MIN_SECONDS, _MAX_SECONDS = 1.0, 60.0


class DrainRate:
    """Exponentially weighted mean of the time between two requests that leave."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._interval: float | None = None

    def tick(self) -> None:
        """A request has left."""
        now = time.monotonic()
        if self._last is not None:
            passed = now - self._last
            interval = passed if self._interval is None else self._interval
            self._interval = interval + _WEIGHT * (passed - interval)
        self._last = now

    def rest(self) -> None:
        """Nothing is left: the time until the next request leaves says nothing of the rate."""
        self._last = None

    def seconds_until_free(self, waiting: int) -> float:
        """Time in which half of `waiting` requests leave at the present rate, between 1 s and 60 s."""
        if self._interval is None:
            return _MIN_SECONDS
        return min(_MAX_SECONDS, max(_MIN_SECONDS, self._interval * waiting / 2))


def check_place(tenant: str, held: Counter[str], most: int, drain_rate: DrainRate) -> None:
    """Does nothing while there is a place.

    When all are taken, a tenant with less than its share of them still gets in: others cannot shut it out.

    Args:
        held: how many requests of each tenant run or wait.
        most: requests that may run and wait.

    Raises:
        Overloaded: `most` are in hand, and this tenant has its share of them; or twice as many are in hand.
    """
    in_hand = held.total()
    if in_hand < most:
        return
    share = most // len(held.keys() | {tenant})
    if held[tenant] >= share or in_hand >= 2 * most:
        raise Overloaded(drain_rate.seconds_until_free(in_hand))


def reading_places(most: int, share: float) -> int:
    """Readings that may run and wait beside `most` other requests."""
    return max(1, int(share * most))
