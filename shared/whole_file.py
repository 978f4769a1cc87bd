"""Files that matter are whole or absent: a full disk or a kill leaves the one that was there, or none."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

OWNER_ALONE, AS_UMASK_SAYS = 0o600, 0o666
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


class NotWritten(OSError):
    """A file or folder could not be written, and is as it was; the message is one line that names it."""

    def __str__(self) -> str:
        return f"cannot write {self.filename}: {self.strerror}"


def write_whole(path: Path, content: bytes, *, mode: int = OWNER_ALONE, new: bool = False) -> None:
    """Puts `content` at `path`, in the way and with the errors of `whole_file`."""
    with whole_file(path, mode=mode, new=new) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path, *, mode: int = OWNER_ALONE, new: bool = False) -> Iterator[BinaryIO]:
    """A file beside `path` that takes its place at the end of the block, on the disk by then.

    After an error in the block nothing of it is left.

    Args:
        mode: of the file from its first moment on, less the umask.
        new: refuse to replace what is there, also what another process puts there meanwhile.

    Raises:
        NotWritten: what is at `path` is as it was.
    """
    with _naming(path):
        if not path.name:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        if new and os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(descriptor)
            _move(part, path, new=new)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def put_in_place(part: Path, path: Path) -> None:
    """Moves a finished file to `path` on the same file system, on the disk, in place of what is there.

    Raises:
        NotWritten: both are as they were.
    """
    with _naming(path):
        _sync(part)
        _move(part, path, new=False)


def make_folder(path: Path, *, mode: int = 0o777) -> None:
    """Makes a folder, and those that it lies in, where it is missing.

    Raises:
        NotWritten: it cannot be made.
    """
    with _naming(path):
        path.mkdir(mode=mode, parents=True, exist_ok=True)


def _move(part: Path, path: Path, *, new: bool) -> None:
    if new:
        _take_name(part, path)
    else:
        part.replace(path)
    try:
        _sync(path.parent)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of file systems whose folders cannot be brought to the disk
            raise


def _take_name(part: Path, path: Path) -> None:
    """Moves a file unless the name is taken, which a link alone does in one step."""
    try:
        path.hardlink_to(part)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        part.replace(path)
    else:
        part.unlink()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except NotWritten:
        raise
    except OSError as error:
        raise NotWritten(error.errno, error.strerror, str(path)) from error
