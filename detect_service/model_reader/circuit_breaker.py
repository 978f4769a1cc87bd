"""Leaves a peer alone that fails again and again."""

import time
from collections.abc import Callable


class CircuitBreaker:
    """Says whether a peer may be asked.

    After `failures` in a row it is left alone for `first_rest` seconds; then one asker tries it. Each further
    failure doubles the rest, up to `longest_rest`; one success ends it.

    Args:
        clock: seconds, never going back.
    """

    def __init__(
        self,
        failures: int = 3,
        first_rest: float = 1.0,
        longest_rest: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = failures
        self._first_rest = first_rest
        self._longest_rest = longest_rest
        self._clock = clock
        self._failures = 0
        self._rest = first_rest
        self._until = 0.0
        self._trying = False

    @property
    def closed(self) -> bool:
        """Whether the peer is thought to be well."""
        return self._failures < self._most

    def admits(self) -> bool:
        """Whether the caller may ask; then it must say what came of it."""
        if self.closed:
            return True
        if self._trying or self._clock() < self._until:
            return False
        self._trying = True
        return True

    def succeeded(self) -> None:
        """The peer has answered."""
        self._failures, self._rest, self._trying = 0, self._first_rest, False

    def failed(self) -> None:
        """The peer has not answered as it should."""
        self._failures += 1
        if self.closed:
            return
        if self._trying:
            self._rest = min(2 * self._rest, self._longest_rest)
        self._until, self._trying = self._clock() + self._rest, False

    def gave_up(self) -> None:
        """The caller no longer wanted to know; that says nothing of the peer."""
        self._trying = False
