"""Checks chains record by record: what was changed, dropped, swapped, repeated, put in or cut off.

A trail may lie in parts: exports, the older first, and the folder, each in order by itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ttmark.services.features.audit.record import (
    CHECKPOINT,
    NO_RECORD,
    Anchor,
    Damaged,
    Head,
    Record,
    read_record,
)
from ttmark.services.features.audit.segments import ChainSegment


@dataclass(frozen=True, slots=True)
class Problem:
    """The first record of a chain that is not what was written, or is missing; `place`: file and line."""

    chain: str
    sequence: int
    what: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.chain}, record {self.sequence}: {self.what}{f' ({self.place})' if self.place else ''}"


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


class ChainCheck:
    """Follows one chain from any record on.

    Attributes:
        removed: the newest record that was removed on purpose, as far as that is known.

    Args:
        anchor: what the key store knows of the chain; None: nothing is held against it, and what the chain
            says of removals is believed.
    """

    def __init__(self, chain: str, anchor: Anchor | None = None) -> None:
        self._chain = chain
        self._head = anchor.head if anchor else None
        self.first: Record | None = None
        self.last: Record | None = None
        self.removed = anchor.removed if anchor else None

    def follow(self, line: bytes, place: str = "") -> Record | Problem:
        """The record in a line, or what is wrong with it."""
        expected = self.last.sequence + 1 if self.last else 1
        try:
            record = read_record(line)
        except Damaged as error:
            return Problem(self._chain, expected, f"was changed: {error}", place)
        if record.chain != self._chain:
            return Problem(self._chain, expected, f"a record of {record.chain} stands in its place", place)
        if self.last is None:
            self.first = record
        elif record.sequence > expected:
            what = f"is missing: number {record.sequence} stands in its place"
            return Problem(self._chain, expected, what, place)
        elif record.sequence < expected:
            return Problem(self._chain, record.sequence, "is repeated or out of its order", place)
        elif record.previous != self.last.hash:
            what = "does not follow the one before it: one of the two was exchanged"
            return Problem(self._chain, record.sequence, what, place)
        if self._head and record.sequence == self._head.sequence and record.hash != self._head.hash:
            what = "is not the one that the key store knows: it and all after it were written anew"
            return Problem(self._chain, record.sequence, what, place)
        self.last = record
        self._note_removal(record)
        return record

    def beginning(self) -> Problem | None:
        """What is wrong with where the chain begins, once it was followed to its end."""
        first, removed = self.first, self.removed
        if first is None or (first.sequence == 1 and first.previous == NO_RECORD):
            return None
        before = first.sequence - 1
        # What is left of a removal that was interrupted is linked to what was to go.
        if removed and (before < removed.sequence or Head(self._chain, before, first.previous) == removed):
            return None
        return Problem(self._chain, 1, f"is missing, with all before number {first.sequence}")

    def end(self) -> Problem | None:
        """What is wrong with where the chain ends, once it was followed so far."""
        last = self.last.sequence if self.last else self.removed.sequence if self.removed else 0
        if self._head is None or last >= self._head.sequence:
            return None
        what = f"is missing, with all up to number {self._head.sequence}: the end was cut off"
        return Problem(self._chain, last + 1, what)

    def _note_removal(self, record: Record) -> None:
        """A checkpoint after the head can be of anybody who may write the folder."""
        if record.event.get("action") != CHECKPOINT or (self._head and record.sequence > self._head.sequence):
            return
        removed = Head(self._chain, int(record.event["through"]), str(record.event["hash"]))
        if self.removed is None or self.removed.sequence < removed.sequence:
            self.removed = removed


@dataclass(slots=True)
class Verification:
    """What was found in a folder.

    Attributes:
        records: that were read and are in order.
        chains: their ends by name.
        begins: of chains whose first records were removed on purpose: number and time of the first that is
            left, from which on the chain is whole.
        removed: chains of which nothing is left, on purpose.
        unanchored: chains of which the store knows no head: a cut at their end was not looked for.
    """

    records: int = 0
    chains: dict[str, Head] = field(default_factory=dict)
    begins: dict[str, tuple[int, str]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    unanchored: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def verify_folder(
    found: Mapping[str, list[ChainSegment]], anchors: Mapping[str, Anchor], seam: Seam | None = None
) -> Verification:
    """Checks all chains of a folder against what the key store knows.

    Args:
        seam: to parts of the trail that were verified before.

    Raises:
        OSError: a file cannot be read.
    """
    result, seam = Verification(), seam or Seam()
    seam.open_part()
    for chain in sorted(found.keys() | anchors.keys()):
        problem = _verify_chain(chain, found.get(chain, []), anchors.get(chain), seam, result)
        if problem is not None:
            result.problems.append(problem)
    unfit = None if result.problems else seam.close_part()
    result.problems += [unfit] if unfit else []
    return result


def _verify_chain(
    chain: str, parts: Iterable[ChainSegment], anchor: Anchor | None, seam: Seam, result: Verification
) -> Problem | None:
    check = ChainCheck(chain, anchor)
    for part in parts:
        for number, line in enumerate(part.lines(), start=1):
            place = f"{part.path.name}, line {number}"
            record = check.follow(line, place)
            if isinstance(record, Problem):
                return record
            problem = seam.meet(record, place)
            if problem is not None:
                return problem
            result.records += 1
    first, last = check.first, check.last
    if first is None or last is None:
        problem = check.end() or seam.meet_none(chain, check.removed)
        result.removed += [] if problem else [chain]
        return problem
    result.chains[chain] = last.head
    if anchor is None:
        result.unanchored.append(chain)
    problem = check.end() or check.beginning()
    if problem is None and first.sequence > 1:
        result.begins[chain] = first.sequence, first.time
    return problem
