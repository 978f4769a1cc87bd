"""New files that nobody but their owner reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import typer

from ttmark.shared.whole_file import NotWritten, whole_file


@contextmanager
def new_closed_file(path: Path) -> Iterator[BinaryIO]:
    """A file that did not exist, mode 0600, there and on the disk at the end of the block alone.

    Raises:
        BadParameter: it exists or cannot be written.
    """
    try:
        with whole_file(path, new=True) as file:
            yield file
    except NotWritten as error:
        raise typer.BadParameter(str(error)) from error
