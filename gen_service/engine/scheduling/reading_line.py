"""Readings of an engine: whose text is read next, and how much of it in a pass."""

import math
from bisect import insort
from collections.abc import Collection
from typing import TypeVar

from ttmark.gen_service.engine.scheduling.fair_line import FairLine
from ttmark.gen_service.engine.scheduling.fair_share import ReadingShare, beyond_their_share, next_victim
from ttmark.gen_service.engine.scheduling.kv_cache_rows import CacheRows
from ttmark.gen_service.engine.scheduling.schedulable import Schedulable, Work

_PIECE_ROWS = 64

J = TypeVar("J", bound=Schedulable)


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
        self.shares.settle({reading.tenant for reading in passed_over if reading in self.running})

    def remove(self, reading: J) -> None:
        """Takes a reading out; nothing if it is none."""
        if self._due.pop(reading, None) is None:
            return
        (self.running if reading in self.running else self.waiting).remove(reading)
        if all(each.tenant != reading.tenant for each in self._due):
            del self._clocks[reading.tenant]
        self._rows.release(reading, comes_back=False)
        reading.forget_cache()

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
