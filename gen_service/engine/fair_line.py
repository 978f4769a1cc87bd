"""Who has a place in an engine, and whose turn it is: tenants among each other, and each one's texts."""

import math
from abc import ABC, abstractmethod
from bisect import insort
from collections import Counter, deque
from collections.abc import Collection, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from ttmark.gen_service.engine.fair_share import FairShare, ReadingShare, beyond_their_share, next_victim
from ttmark.gen_service.engine.kv_cache_manager import CacheRows
from ttmark.gen_service.engine.schedulable import Schedulable, Work

_PIECE_ROWS = 64

J = TypeVar("J", bound=Schedulable)


class FairLine(ABC, Generic[J]):
    """Sequences of tenants: places go to whoever holds the fewest, turns to whoever had the fewest rows.

    A tenant below its share of the places gets one at once, although others hold them all.

    Args:
        places: sequences that have one at the same time.

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


class ReadingLine(FairLine[J]):
    """Readings of an engine: they have places of their own, and take cache rows from nobody who writes.

    Within a tenant a short text overtakes a long one: they go in the order in which they would end if all of
    the tenant's took turns (weighted fair queueing; Demers, Keshav and Shenker 1989). So no text waits longer
    for shorter ones than it would in turn with them.
    """

    _patience = math.inf

    def __init__(self, rows: CacheRows[J], share: ReadingShare, places: int) -> None:
        super().__init__(places)
        self._rows = rows
        self._share = share
        self._writing = self._saving = False
        self._due: dict[J, float] = {}  # on its tenant's clock
        self._clocks: dict[str, float] = {}  # rows that each text of a tenant had, if they took turns

    def __bool__(self) -> bool:
        return bool(self._due)

    @property
    def held(self) -> int:
        return sum(reading.extent.length for reading in self.running if reading.extent)

    def add(self, reading: J) -> None:
        self._due[reading] = self._clocks.setdefault(reading.tenant, 0.0) + reading.token_limit
        insort(self.waiting, reading, key=self._due.__getitem__)

    def begin_pass(self, *, writing: bool) -> None:
        """Takes in what there is room for; `writing` says whether anything is to be written."""
        self._writing, self._saving = writing, False
        self._admit()
        # A tenant whose long texts have all its places is not kept from its short ones.
        for tenant, reading in self._heads().items():
            others = (self._due[each] for each in self.running if each.tenant == tenant)
            if self._due[reading] < min(others, default=math.inf):
                self._take_in(reading)

    def owed(self, rows: int) -> bool:
        """Whether readings are to be planned first: they have earned a whole pass of `rows`."""
        return self._writing and self._share.credit >= rows

    def piece(self, rows: int) -> int:
        """Rows of a pass of `rows` that one text may have: few beside those who write, whom it holds up."""
        return min(rows, _PIECE_ROWS) if self._writing else rows

    def may_read(self, work: Work, fits: bool) -> bool:
        """Whether a reading's work that `fits` into the pass stays within the share of readings.

        If it does not, what is left of the share is saved for it: smaller work would always come first.
        """
        self._saving |= self._writing and not (fits and work.rows <= self._share.credit)
        return fits and not self._saving

    def count(self, reading: J, rows: int) -> None:
        """Counts rows of a pass; negative ones were planned and given up."""
        self._share.read(rows)
        self.shares.serve(reading.tenant, rows)
        self._clocks[reading.tenant] += rows / sum(each.tenant == reading.tenant for each in self._due)

    def end_pass(self, passed_over: Collection[J]) -> None:
        """A pass is planned, without these."""
        self.shares.settle({reading.tenant for reading in passed_over if reading in self.running})
        self._share.settle(writing=self._writing, reading=bool(self))

    def remove(self, reading: J) -> bool:
        """Takes a reading out; false if it is none."""
        if self._due.pop(reading, None) is None:
            return False
        (self.running if reading in self.running else self.waiting).remove(reading)
        if all(each.tenant != reading.tenant for each in self._due):
            del self._clocks[reading.tenant]
        self._rows.release(reading, comes_back=False)
        reading.forget_cache()
        return True

    def give_way(self, reading: J | None = None) -> J | None:
        """A reading gives up its cache rows and is read again when there is room; None: there is none."""
        if reading is None and not self.running:
            return None
        reading = reading or next_victim(self.running, self._due)
        self.running.remove(reading)
        self._rows.release(reading, comes_back=True)
        reading.forget_cache()
        insort(self.waiting, reading, key=self._due.__getitem__)
        return reading

    def _take_in(self, sequence: J) -> bool:
        """A tenant that has no rows takes them from others, each of whom keeps its first reading."""
        tenant, wanted, free = sequence.tenant, sequence.token_limit, self._rows.available
        victims = iter(
            beyond_their_share(self.running, self._due, tenant=tenant, wanted=wanted, free=free, share=0)
        )
        while not self._rows.admit(sequence, wanted):
            victim = next(victims, None)
            if victim is None:
                return False
            self.give_way(victim)
        self.waiting.remove(sequence)
        insort(self.running, sequence, key=self._due.__getitem__)
        return True
