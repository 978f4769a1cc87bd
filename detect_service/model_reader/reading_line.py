"""Whose texts go to a reader next: round by tenants, so that one's volume is not another's wait."""

import asyncio
import heapq
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

PLACES, OF_ONE_TENANT = 4, 2
SHORT_SECONDS = 0.5
"""Of a turn that is short."""


class _Turn(NamedTuple):
    """One that waits for a place, or has it; the turns of a tenant go in the order of their tags."""

    tag: float
    number: int
    seconds: float
    place: asyncio.Future[None]


@dataclass(slots=True)
class _Tenant:
    """A tenant's turns, the shortest first, but none overtaken by more than it takes itself.

    Attributes:
        clock: seconds of places that it has had; the tenant with the fewest goes next.
        ended: seconds of turns that are over, as they were expected.
    """

    clock: float
    ended: float = 0.0
    places: int = 0
    waiting: list[_Turn] = field(default_factory=list)

    @property
    def next(self) -> _Turn | None:
        while self.waiting and self.waiting[0].place.done():  # given up
            heapq.heappop(self.waiting)
        return self.waiting[0] if self.waiting else None


class ReadingLine:
    """Places at a reader. A tenant has half of them at most, and one is kept for what is short."""

    def __init__(self) -> None:
        self._free = PLACES
        self._tenants: dict[str, _Tenant] = {}
        self._numbers = count()

    @asynccontextmanager
    async def turn(self, name: str, seconds: float) -> AsyncIterator[None]:
        """A place for a tenant, for about so many seconds."""
        # As far as the one that has had the least: who comes now has no claim to time gone by.
        clock = min((other.clock for other in self._tenants.values()), default=0.0)
        tenant = self._tenants.setdefault(name, _Tenant(clock))
        place = asyncio.get_running_loop().create_future()
        heapq.heappush(tenant.waiting, _Turn(tenant.ended + seconds, next(self._numbers), seconds, place))
        self._give_places()
        began = time.monotonic()
        try:
            await place
            began = time.monotonic()
            yield
        finally:
            if not place.cancelled():
                tenant.clock += time.monotonic() - began
                tenant.ended += seconds
                tenant.places -= 1
                self._free += 1
            self._give_places()

    def _give_places(self) -> None:
        while ready := [one for one in self._tenants.values() if self._may_go(one)]:
            tenant = min(ready, key=lambda one: one.clock)
            heapq.heappop(tenant.waiting).place.set_result(None)
            tenant.places += 1
            self._free -= 1
        self._tenants = {name: one for name, one in self._tenants.items() if one.places or one.next}

    def _may_go(self, tenant: _Tenant) -> bool:
        if tenant.next is None or not self._free or tenant.places >= OF_ONE_TENANT:
            return False
        return self._free > 1 or tenant.next.seconds <= SHORT_SECONDS
