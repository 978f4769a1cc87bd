"""The seam between parts of the trail: exports, the older first, and the folder, each in order by itself."""

from ttmark.shared.audit.problem import Problem
from ttmark.shared.audit.record import Head, Record


class Seam:
    """Whether a part goes on where the one before ended, chain by chain, or repeats its end.

    A chain that one of two parts does not have is no problem: it began or ended between them.
    """

    def __init__(self) -> None:
        self._ends: dict[str, Head] = {}
        self._new: dict[str, Head] = {}

    def open_part(self) -> None:
        """Begins a part; one that was not closed is forgotten."""
        self._new.clear()

    def meet(self, record: Record, place: str = "") -> Problem | None:
        """What is wrong between a record, the next of its chain in this part, and the parts before."""
        end = self._ends.get(record.chain)
        is_first = record.chain not in self._new
        self._new[record.chain] = record.head
        if end is None:
            return None
        if is_first and record.sequence > end.sequence + 1:
            return self._gap(end, record.sequence - 1)
        hash_there = {end.sequence: record.hash, end.sequence + 1: record.previous}.get(
            record.sequence, end.hash
        )
        if hash_there != end.hash:
            return Problem(record.chain, record.sequence, "does not fit the part before", place)
        return None

    def meet_none(self, chain: str, removed: Head | None) -> Problem | None:
        """The same where nothing is left of a chain: the parts before reach as far as it was removed."""
        end = self._ends.get(chain)
        if end is None or removed is None or end.sequence > removed.sequence or end == removed:
            return None
        if end.sequence == removed.sequence:
            return Problem(chain, end.sequence, "is another one than was removed")
        return self._gap(end, removed.sequence)

    def close_part(self) -> Problem | None:
        """Ends a part; what is wrong with it as a whole."""
        for chain, head in self._new.items():
            end = self._ends.get(chain)
            if end is not None and head.sequence < end.sequence:
                return Problem(chain, head.sequence, "is the end of a part that is older than the one before")
        self._ends |= self._new
        return None

    @staticmethod
    def _gap(end: Head, last: int) -> Problem:
        numbers = f"number {last}" if last == end.sequence + 1 else f"numbers {end.sequence + 1} to {last}"
        return Problem(end.chain, end.sequence + 1, f"is in no part: {numbers} are missing between two")
