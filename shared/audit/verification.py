"""Checks chains record by record: what was changed, dropped, swapped, repeated, put in or cut off."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ttmark.shared.audit.record import CHECKPOINT, NO_RECORD, Damaged, Head, Record, read_record
from ttmark.shared.audit.segments import Segment


@dataclass(frozen=True, slots=True)
class Problem:
    """The first record of a chain that is not what was written.

    Attributes:
        sequence: its number, or that of the first that is missing.
        place: file and line, where there is one.
    """

    chain: str
    sequence: int
    what: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.chain}, record {self.sequence}: {self.what}{f' ({self.place})' if self.place else ''}"


class ChainCheck:
    """Follows one chain from any record on.

    Attributes:
        first: the first record; None before there is one.
        last: the newest record so far.
        removed: the newest record that a checkpoint says was removed.
    """

    def __init__(self, chain: str) -> None:
        self._chain = chain
        self.first: Record | None = None
        self.last: Record | None = None
        self.removed: Head | None = None

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
        self.last = record
        if record.event.get("action") == CHECKPOINT:
            self.removed = Head(self._chain, int(record.event["through"]), str(record.event["hash"]))
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


@dataclass(slots=True)
class Verification:
    """What was found in a folder.

    Attributes:
        records: that were read and are in order.
        chains: their ends by name.
        unanchored: chains of which the store knows no head: a cut at their end was not looked for.
    """

    records: int = 0
    chains: dict[str, Head] = field(default_factory=dict)
    unanchored: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def verify_folder(found: Mapping[str, list[Segment]], heads: Mapping[str, Head]) -> Verification:
    """Checks all chains of a folder against the heads that the key store knows.

    Raises:
        OSError: a file cannot be read.
    """
    result = Verification()
    for chain in sorted(found.keys() | heads.keys()):
        problem = _verify_chain(chain, found.get(chain, []), heads.get(chain), result)
        if problem is not None:
            result.problems.append(problem)
    return result


def _verify_chain(
    chain: str, parts: Iterable[Segment], head: Head | None, result: Verification
) -> Problem | None:
    check = ChainCheck(chain)
    for part in parts:
        for number, line in enumerate(part.lines(), start=1):
            record = check.follow(line, f"{part.path.name}, line {number}")
            if isinstance(record, Problem):
                return record
            result.records += 1
            if head is not None and record.sequence == head.sequence and record.hash != head.hash:
                what = "is not the one that the key store knows: it and all after it were written anew"
                return Problem(chain, record.sequence, what, f"{part.path.name}, line {number}")
    if check.last is not None:
        result.chains[chain] = check.last.head
    last = check.last.sequence if check.last else 0
    if head is None:
        result.unanchored.append(chain)
    elif last < head.sequence:
        what = f"is missing, with all up to number {head.sequence}: the end was cut off"
        return Problem(chain, last + 1, what)
    return check.beginning()
