"""The locked file that says who writes a chain: `<writer>.lock`, which holds the chain's name."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MOST_WRITERS = 100
_LONGEST_NAME = 200


def own(folder: Path, writer: str) -> tuple[str, int]:
    """A name that no other process writes under now, and the locked file that says so.

    Raises:
        OSError: the folder cannot be written, or too many write under that name.
    """
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
