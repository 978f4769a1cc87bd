"""Files of a folder of audit trails: `<chain>.<number of the first record>.jsonl`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ttmark.shared.audit.record import Damaged, Record, read_record

_NAME = re.compile(r"(?P<chain>[\w@-]+\.[0-9a-f]{8})\.(?P<first>\d{12})\.jsonl", re.ASCII)
_BLOCK = 65_536


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """A file with consecutive records of one chain."""

    chain: str
    first: int
    path: Path

    @classmethod
    def named(cls, folder: Path, chain: str, first: int) -> "Segment":
        """The segment of a folder whose first record is number `first`."""
        return cls(chain, first, folder / f"{chain}.{first:012d}.jsonl")

    def lines(self) -> Iterator[bytes]:
        """Its whole lines, without their ends; what is still being written is left out."""
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line[:-1]

    def first_record(self) -> Record | None:
        """None where the file is empty.

        Raises:
            Damaged: its first line is not as it was written.
        """
        line = next(self.lines(), None)
        return None if line is None else read_record(line)


def segments(folder: Path) -> dict[str, list[Segment]]:
    """All segments of a folder by chain, each in order; other files are left alone.

    Raises:
        OSError: the folder cannot be read.
    """
    found: dict[str, list[Segment]] = {}
    for path in folder.iterdir():
        name = _NAME.fullmatch(path.name)
        if name is not None:
            found.setdefault(name["chain"], []).append(Segment(name["chain"], int(name["first"]), path))
    return {chain: sorted(found[chain]) for chain in sorted(found)}


def last_line(path: Path) -> tuple[bytes, int]:
    """The last whole line without its end, empty where there is none, and the number of bytes after it."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        content = b""
        while len(content) < size and content.count(b"\n", 0, -1) < 2:
            start = max(0, size - len(content) - _BLOCK)
            file.seek(start)
            content = file.read(size - len(content) - start) + content
    whole, _, torn = content.rpartition(b"\n")
    return whole.rpartition(b"\n")[2], len(torn)


def old_segments(parts: Sequence[Segment], before: str) -> list[tuple[Segment, Record]]:
    """Those at a chain's beginning whose records are all from before that time, each with its last record.

    What follows a damaged record stays, as evidence.
    """
    old: list[tuple[Segment, Record]] = []
    for part in parts:
        line, _ = last_line(part.path)
        try:
            last = read_record(line) if line else old[-1][1]  # empty after a crash
        except (Damaged, IndexError):
            break
        if last.time >= before:
            break
        old.append((part, last))
    return old


def remove(parts: Iterable[Segment]) -> None:
    """Removes segments, the oldest first: after an interruption what is left has no gap."""
    for part in parts:
        part.path.unlink(missing_ok=True)
