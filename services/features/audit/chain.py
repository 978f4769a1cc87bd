"""A chain of audit records as its writer continues it, in segments of a folder; removal of its beginning.

A writer removes its own old segments as it goes on. `removal` is for those of writers that are gone, and for
times that an operator chooses: whole segments at the beginning of chains, whoever wrote them.
"""

import errno
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ttmark.services.features.audit.record import (
    BROKEN,
    CHECKPOINT,
    NO_RECORD,
    Damaged,
    Head,
    Record,
    read_record,
    record_line,
)
from ttmark.services.features.audit.segments import (
    ChainSegment,
    last_line,
    name_chain,
    old_segments,
    own,
    segments,
    unwritten,
    written_chain,
)

SEGMENT_BYTES = 64 * 2**20


class Chain:
    """The records of one writer, which goes on where it ended the last time; safe to use from any thread.

    A second process of the same name writes a chain of its own beside it. A record is handed to the operating
    system whole or not at all, so a process that is killed loses none; `sync` brings them to the disk. A new
    segment begins each day (UTC) and every 64 MiB. What is found damaged at the start is left as it is, and a
    new chain begins.

    Raises:
        OSError: the folder cannot be written; also from every method that writes.
    """

    def __init__(
        self,
        folder: Path,
        writer: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._now = now
        self._lock = threading.Lock()
        self._file = -1
        self._size = 0
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._writer, self._owned = own(folder, re.sub(r"[^A-Za-z0-9@_-]", "-", writer))
        self.torn_bytes = 0
        try:
            self._go_on(written_chain(self._owned))
        except BaseException:
            os.close(self._owned)
            raise

    @property
    def head(self) -> Head:
        """The newest record; number 0 where there is none yet."""
        return self._head

    def append(self, event: Mapping[str, Any]) -> Head:
        with self._lock:
            return self._append(event)

    def sync(self) -> Head:
        """Brings what was written to the disk, and gives the newest record of it."""
        with self._lock:
            head, file = self._head, os.dup(self._file) if self._file >= 0 else -1
        if file >= 0:
            try:
                os.fsync(file)
            finally:
                os.close(file)
        return head

    def holds(self, head: Head) -> bool:
        if head.chain != self._head.chain or head.sequence > self._head.sequence:
            return False
        parts = [part for part in self._segments() if part.first <= head.sequence]
        for line in parts[-1].lines() if parts else ():
            with suppress(Damaged):
                if read_record(line).head == head:
                    return True
        return False

    def begin_anew(self) -> None:
        """Leaves the chain as it is, as evidence, and begins another that names it."""
        with self._lock:
            before = self._head
            self._begin()
            self._append({"action": BROKEN, "chain": before.chain, "last": before.sequence})

    def checkpoint(self, keep: timedelta) -> list[ChainSegment]:
        """Says in a record that segments without a record younger than `keep` go; these, for `remove`.

        They may go once the key store knows of that record: until then it excuses nothing. The segment that
        is written to stays.
        """
        with self._lock:
            old = old_segments(self._segments()[:-1], written(self._now() - keep))
            if not old:
                return []
            _, last = old[-1]
            self._append(
                {"action": CHECKPOINT, "through": last.sequence, "hash": last.hash, "segments": len(old)}
            )
            return [part for part, _ in old]

    def close(self) -> None:
        """Brings everything to the disk and lets another process go on."""
        self.sync()
        with self._lock:
            self._close_segment()
            os.close(self._owned)

    def _segments(self) -> list[ChainSegment]:
        return segments(self._folder).get(self._head.chain, [])

    def _go_on(self, chain: str) -> None:
        """Continues a chain after its last whole record, or begins one."""
        for part in reversed(segments(self._folder).get(chain, [])):
            line, torn_bytes = last_line(part.path)
            self.torn_bytes += torn_bytes
            if not line:  # begun on a full disk, or torn: left there, it would stand before its own records
                part.path.unlink()
                continue
            try:
                last = read_record(line)
            except Damaged:
                break
            self._head, self._time = last.head, last.time
            self._open(part, os.O_RDWR)
            self._size -= torn_bytes
            os.ftruncate(self._file, self._size)
            return
        self._begin()

    def _begin(self) -> None:
        self._close_segment()
        chain = f"{self._writer}.{secrets.token_hex(4)}"
        name_chain(self._owned, chain)
        self._head, self._time = Head(chain, 0, NO_RECORD), ""

    def _append(self, event: Mapping[str, Any]) -> Head:
        # A clock that is put back must not make a range of times ambiguous.
        time = max(written(self._now()), self._time)
        if self._file < 0 or self._size >= self._segment_bytes or time[:10] != self._time[:10]:
            if self._file >= 0:
                os.fsync(self._file)
            self._close_segment()
            part = ChainSegment.named(self._folder, self._head.chain, self._head.sequence + 1)
            self._open(part, os.O_RDWR | os.O_CREAT)
        line, head = record_line(self._head, time, event)
        self._write(line + b"\n")
        self._head, self._time = head, time
        return head

    def _write(self, line: bytes) -> None:
        written = 0
        try:
            written = os.write(self._file, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            if written:
                os.ftruncate(self._file, self._size)
            raise
        self._size += written

    def _open(self, part: ChainSegment, flags: int) -> None:
        self._file = os.open(part.path, flags | os.O_APPEND, 0o600)
        self._size = os.fstat(self._file).st_size

    def _close_segment(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def written(time: datetime) -> str:
    """A time as records have it."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Removal:
    """What goes of one chain, from record to record; `all_of_it`: nothing is left, and its writer is gone."""

    first: Record
    last: Record
    parts: tuple[ChainSegment, ...]
    all_of_it: bool

    @property
    def records(self) -> int:
        return self.last.sequence - self.first.sequence + 1

    def said(self) -> dict[str, str | int]:
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
        first = old[0][0].first_record() if old else None
        gone = None
        if first is not None:
            gone = Removal(first, old[-1][1], tuple(part for part, _ in old), len(old) == len(parts))
        yield gone, kept
