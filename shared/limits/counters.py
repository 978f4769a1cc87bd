"""Counters that are forgotten after a while: the one thing that limits keep."""

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from ttmark.shared.limits.counting_filter import Inquiry, LocalSpaces, Reply

_MOST_COUNTERS = 100_000
PARTS = 60
"""Of a counter: the latest, which are kept."""


class Counters(Protocol):
    """Named integers in numbered parts, from zero on, named values, a space for each tenant's questions."""

    async def add(self, name: str, amount: int, *, part: int = 0, lifetime_seconds: float) -> dict[int, int]:
        """Adds to a part of a counter, and gives its latest parts.

        All of the counter is forgotten `lifetime_seconds` after its last use.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """

    async def ask(self, inquiry: Inquiry) -> list[Reply]:
        """Counts each question of a request in the tenant's space, or says why not.

        Raises:
            StoreUnavailable: the space cannot be reached.
        """

    async def put(self, name: str, values: Mapping[bytes, bytes], *, lifetime_seconds: float) -> None:
        """Keeps values under a name; all of the name are forgotten `lifetime_seconds` after its last use.

        Raises:
            StoreUnavailable: they cannot be kept.
        """

    async def get(self, name: str, fields: Sequence[bytes]) -> list[bytes | None]:
        """The values that were kept under a name.

        Raises:
            StoreUnavailable: they cannot be reached.
        """

    @property
    def shared(self) -> bool:
        """Whether other replicas count with them now; a single process is all replicas there are."""

    async def close(self) -> None:
        """Gives up connections."""


class LocalCounters:
    """Counters of this process alone, the `most` that were used last."""

    def __init__(self, *, most: int = _MOST_COUNTERS) -> None:
        self._most = most
        self._values: dict[str, tuple[dict[int, int], float]] = {}  # in the order of their last use
        self._kept: dict[str, tuple[dict[bytes, bytes], float]] = {}
        self._spaces = LocalSpaces()

    @property
    def shared(self) -> bool:
        """Whoever uses nothing else has one process."""
        return True

    async def add(self, name: str, amount: int, *, part: int = 0, lifetime_seconds: float) -> dict[int, int]:
        now = time.monotonic()
        parts, expires_at = self._values.pop(name, ({}, 0.0))
        kept = {one: count for one, count in parts.items() if one > part - PARTS and expires_at > now}
        kept[part] = kept.get(part, 0) + amount
        self._values[name] = (kept, now + lifetime_seconds)
        while len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return dict(kept)

    async def ask(self, inquiry: Inquiry) -> list[Reply]:
        return self._spaces.ask(inquiry)

    async def put(self, name: str, values: Mapping[bytes, bytes], *, lifetime_seconds: float) -> None:
        now = time.monotonic()
        self._kept = {old: kept for old, kept in self._kept.items() if kept[1] > now}
        known = self._kept[name][0] if name in self._kept else {}
        known.update(values)
        self._kept[name] = (known, now + lifetime_seconds)

    async def get(self, name: str, fields: Sequence[bytes]) -> list[bytes | None]:
        values, expires_at = self._kept.get(name, ({}, 0.0))
        return [values.get(field) if expires_at > time.monotonic() else None for field in fields]

    async def close(self) -> None:
        """Nothing to give up."""
