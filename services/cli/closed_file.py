"""New files that nobody but their owner reads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import typer


@contextmanager
def new_closed_file(path: Path) -> Iterator[BinaryIO]:
    """A file that did not exist, mode 0600, on disk at the end of the block; gone again after an error.

    Raises:
        BadParameter: it exists or cannot be written.
    """
    try:
        handle = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
    except OSError as error:
        raise typer.BadParameter(f"cannot write {path}: {error.strerror}") from error
    try:
        with handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
    except BaseException as error:
        path.unlink()
        if isinstance(error, OSError):
            raise typer.BadParameter(f"cannot write {path}: {error.strerror}") from error
        raise
