"""The files of an audit folder: segments of chains, and a lock for each writer.

A segment is `<chain>.<number of the first record>.jsonl`. The lock `<writer>.lock` holds the chain's name.
"""

import errno
import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ttmark.services.features.audit.record import Damaged, Record, read_record

_NAME = re.compile(r"(?P<chain>[\w@-]+\.[0-9a-f]{8})\.(?P<first>\d{12})\.jsonl", re.ASCII)
_BLOCK = 65_536


@dataclass(frozen=True, slots=True, order=True)
class ChainSegment:
    chain: str
    first: int
    path: Path

    @classmethod
    def named(cls, folder: Path, chain: str, first: int) -> "ChainSegment":
        """The segment of a folder whose first record is number `first`."""
        return cls(chain, first, folder / f"{chain}.{first:012d}.jsonl")

    def lines(self) -> Iterator[bytes]:
        """Its whole lines, without their ends; what is still being written is left out."""
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line[:-1]

    def first_record(self) -> Record | None:
        """None where the file is empty. Raises Damaged: its first line is not as it was written."""
        line = next(self.lines(), None)
        return None if line is None else read_record(line)


def segments(folder: Path) -> dict[str, list[ChainSegment]]:
    """All segments of a folder by chain, in order; other files are left alone. Raises OSError."""
    found: dict[str, list[ChainSegment]] = {}
    for path in folder.iterdir():
        name = _NAME.fullmatch(path.name)
        if name is not None:
            found.setdefault(name["chain"], []).append(ChainSegment(name["chain"], int(name["first"]), path))
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


def old_segments(parts: Sequence[ChainSegment], before: str) -> list[tuple[ChainSegment, Record]]:
    """Those at a chain's beginning whose records are all from before that time, each with its last record.

    What follows a damaged record stays, as evidence.
    """
    old: list[tuple[ChainSegment, Record]] = []
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


def remove(parts: Iterable[ChainSegment]) -> None:
    """Removes segments, the oldest first: after an interruption what is left has no gap."""
    for part in parts:
        part.path.unlink(missing_ok=True)


_MOST_WRITERS = 100
_LONGEST_NAME = 200


def own(folder: Path, writer: str) -> tuple[str, int]:
    """A name that no other process writes under now, and its locked file. Raises OSError: there is none."""
    for number in range(1, _MOST_WRITERS + 1):
        name = writer if number == 1 else f"{writer}-{number}"
        file = os.open(_path(folder, name), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            continue
        return name, file
    raise OSError(errno.EAGAIN, f"{_MOST_WRITERS} processes write as {writer}")


def written_chain(file: int) -> str:
    """The chain that a lock names; empty in a new one."""
    return os.pread(file, _LONGEST_NAME, 0).decode(errors="replace")


def name_chain(file: int, chain: str) -> None:
    """Makes a lock name a chain.

    Raises:
        OSError: it does not; who reads it finds no such chain, and begins another.
    """
    name = chain.encode()
    if os.pwrite(file, name, 0) < len(name):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.ftruncate(file, len(name))


@contextmanager
def unwritten(folder: Path, chain: str) -> Iterator[bool]:
    """Whether nobody writes the chain, nor will in this context. Without a lock that is not known: no."""
    try:
        file = os.open(_path(folder, chain.rpartition(".")[0]), os.O_RDWR)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield written_chain(file) != chain  # a writer never comes back to a chain that it left
    else:
        yield True
    finally:
        os.close(file)


def forget(folder: Path, chain: str) -> None:
    """Removes the lock of a chain that is `unwritten` and gone; its writer begins another with a new one."""
    path = _path(folder, chain.rpartition(".")[0])
    if path.read_text(errors="replace") == chain:
        path.unlink()


def _path(folder: Path, writer: str) -> Path:
    return folder / f"{writer}.lock"
