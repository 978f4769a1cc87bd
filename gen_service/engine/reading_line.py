"""Texts that wait to be read, or are read, beside the sequences that are written."""

from collections import Counter, deque
from collections.abc import Collection
from typing import Generic, TypeVar

from ttmark.gen_service.engine.cache_rows import CacheRows
from ttmark.gen_service.engine.fair_share import ReadingShare
from ttmark.gen_service.engine.job import Job, Work

J = TypeVar("J", bound=Job)


class ReadingLine(Generic[J]):
    """Readings of an engine: they have places of their own, and take cache rows from nobody.

    Tenants get their places in turn; those who run take turns in the passes.

    Args:
        places: texts that are read at the same time.

    Attributes:
        waiting: without cache rows, oldest first.
        running: with cache rows, those first that were passed over.
    """

    def __init__(self, rows: CacheRows[J], share: ReadingShare, places: int) -> None:
        self.waiting: deque[J] = deque()
        self.running: list[J] = []
        self._rows = rows
        self._share = share
        self._places = places
        self._writing = False

    def __bool__(self) -> bool:
        return bool(self.waiting or self.running)

    @property
    def held(self) -> int:
        """Cache rows that readings hold."""
        return sum(reading.extent.length for reading in self.running if reading.extent)

    def add(self, reading: J) -> None:
        """Queues a reading behind the others."""
        self.waiting.append(reading)

    def begin_pass(self, *, writing: bool) -> None:
        """Takes in what there is room for; `writing` says whether anything is to be written."""
        self._writing = writing
        while self.waiting and len(self.running) < self._places:
            held = Counter(reading.tenant for reading in self.running)
            reading = min(self.waiting, key=lambda each: held[each.tenant])
            if not self._rows.admit(reading, reading.token_limit):
                return
            self.waiting.remove(reading)
            self.running.append(reading)

    def owed(self, rows: int) -> bool:
        """Whether readings are to be planned first: they have earned a whole pass of `rows`."""
        return self._writing and self._share.credit >= rows

    def may_read(self, work: Work) -> bool:
        """Whether a reading's work stays within the share of this pass."""
        return not self._writing or work.rows <= self._share.credit

    def end_pass(self, passed_over: Collection[J]) -> None:
        """Puts those first that were passed over."""
        self.running.sort(key=lambda each: each not in passed_over)
        self._share.settle(writing=self._writing, reading=bool(self))

    def remove(self, reading: J) -> bool:
        """Takes a reading out; false if it is none."""
        if reading in self.running:
            self.running.remove(reading)
        elif reading in self.waiting:
            self.waiting.remove(reading)
        else:
            return False
        self._rows.release(reading, comes_back=False)
        reading.forget_cache()
        return True

    def give_way(self) -> J | None:
        """The youngest gives up its cache rows and is read again when there is room; None: there is none."""
        if not self.running:
            return None
        reading = self.running.pop()
        self._rows.release(reading, comes_back=True)
        reading.forget_cache()
        self.waiting.appendleft(reading)
        return reading
