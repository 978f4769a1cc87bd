"""Who has a place in an engine, and whose turn it is: tenants among each other, and each one's texts."""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from ttmark.gen_service.engine.scheduling.fair_share import FairShare
from ttmark.gen_service.engine.scheduling.schedulable import Schedulable

J = TypeVar("J", bound=Schedulable)


class FairLine(ABC, Generic[J]):
    """Sequences of tenants: places go to whoever holds the fewest, turns to whoever had the fewest rows.

    A tenant below its share of the places gets one at once, although others hold them all.

    Attributes:
        waiting: sequences without cache rows; of each tenant the first is due first.
        running: sequences with cache rows; of each tenant the first is due first.
        shares: rows of passes that each tenant was given.
    """

    _patience: float = 64
    """How often the cache may be too full for a tenant's next sequence before no other gets a place."""

    def __init__(self, places: int) -> None:
        self.waiting: deque[J] = deque()
        self.running: list[J] = []
        self.shares = FairShare()
        self._places = places
        self._kept_out: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self.waiting or self.running)

    @property
    def tenants_in_hand(self) -> int:
        return len({sequence.tenant for sequence in (*self.waiting, *self.running)})

    def in_turn(self) -> Iterator[J]:
        """The running sequences; whatever was planned meanwhile, the tenant comes next that is due."""
        lines: dict[str, deque[J]] = {}
        for sequence in self.running:
            lines.setdefault(sequence.tenant, deque()).append(sequence)
        turns = [(self.shares.level(tenant), place, tenant) for place, tenant in enumerate(lines)]
        heapify(turns)
        while turns:
            _, place, tenant = heappop(turns)
            yield lines[tenant].popleft()
            if lines[tenant]:
                heappush(turns, (self.shares.level(tenant), place, tenant))

    @abstractmethod
    def _take_in(self, sequence: J) -> bool:
        """Gives a sequence that waits a place and cache rows; false if there are no rows."""

    def _admit(self) -> None:
        """Gives places to those who wait, first to the tenants that hold the fewest."""
        refused: set[str] = set()
        fair = self._places // max(1, self.tenants_in_hand)
        while heads := self._heads(refused):
            places = Counter(sequence.tenant for sequence in self.running)
            tenant = min(
                heads, key=lambda each: (not self._impatient(each), places[each], self.shares.level(each))
            )
            if len(self.running) >= self._places and places[tenant] >= max(1, fair):
                return
            if self._take_in(heads[tenant]):
                self._kept_out.pop(tenant, None)
                continue
            self._kept_out[tenant] += 1
            if self._impatient(tenant):
                return  # what others give back is for this one
            refused.add(tenant)

    def _heads(self, refused: Collection[str] = ()) -> dict[str, J]:
        """The first waiting sequence of each tenant that was not refused."""
        heads: dict[str, J] = {}
        for sequence in self.waiting:
            if sequence.tenant not in refused:
                heads.setdefault(sequence.tenant, sequence)
        return heads

    def _impatient(self, tenant: str) -> bool:
        """Whether the cache was too full for the tenant's next sequence again and again."""
        return self._kept_out[tenant] > self._patience
