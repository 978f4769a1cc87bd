"""Old records that an operator removes: whole segments at the beginning of chains, whoever wrote them.

A writer removes its own old segments as it goes on. This is for those of writers that are gone, and for times
that an operator chooses.
"""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ttmark.shared.audit.record import Head, Record
from ttmark.shared.audit.segments import Segment, old_segments, remove, segments
from ttmark.shared.audit.writer_lock import forget, unwritten


@dataclass(frozen=True, slots=True)
class Removal:
    """What goes of one chain.

    Attributes:
        first, last: the oldest and the newest record that go.
        all_of_it: nothing of the chain is left, and its writer is gone.
    """

    first: Record
    last: Record
    parts: tuple[Segment, ...]
    all_of_it: bool

    @property
    def records(self) -> int:
        """How many."""
        return self.last.sequence - self.first.sequence + 1

    def said(self) -> dict[str, str | int]:
        """What the trail says of it for good."""
        return {
            "chain": self.last.chain,
            "first": self.first.sequence,
            "through": self.last.sequence,
            "records": self.records,
            "since": self.first.time,
            "until": self.last.time,
            "hash": self.last.hash,
            "segments": len(self.parts),
        }


@contextmanager
def one_removal_at_a_time(folder: Path) -> Iterator[None]:
    """Waits until no other process is in this context: what one plans, another would take away.

    Raises:
        OSError: the folder cannot be written.
    """
    with (folder / "removal.lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def removal(
    folder: Path, chain: str, before: str, through: Head | None = None
) -> Iterator[tuple[Removal | None, bool]]:
    """What goes of a chain: segments whose records are all from before that time; None: nothing does.

    The other value is whether the newest segment is as old, and stays because a writer may go on with it. In
    this context nobody begins to write to a chain that goes as a whole.

    Args:
        through: the newest record that may go; None: any.

    Raises:
        OSError: the folder cannot be used.
    """
    with unwritten(folder, chain) as nobody_writes:
        parts = segments(folder).get(chain, [])
        old = old_segments(parts, before)
        kept = len(old) == len(parts) > 0 and not nobody_writes
        if kept:
            old.pop()
        while through is not None and old and old[-1][1].sequence > through.sequence:
            old.pop()
        yield _removal(old, all_of_it=len(old) == len(parts)), kept


def remove_removal(folder: Path, gone: Removal) -> None:
    """Removes what the trail and the key store already say is gone; may be interrupted and repeated."""
    remove(gone.parts)
    if gone.all_of_it:
        forget(folder, gone.last.chain)


def _removal(old: Sequence[tuple[Segment, Record]], *, all_of_it: bool) -> Removal | None:
    first = old[0][0].first_record() if old else None
    if first is None:
        return None
    return Removal(first, old[-1][1], tuple(part for part, _ in old), all_of_it)
