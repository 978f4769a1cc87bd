"""How fast requests leave the engine, and so how long a refused client should wait."""

import time

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
