"""Files that commands read and write: standard input, new files for their owner alone, public keys."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

import httpx
import typer

from ttmark.services.startup import StartupError, in_one_line
from ttmark.shared.outgoing import blocking, http_client
from ttmark.shared.signed_files.signed_file import CasePublicKey, NotACaseKey
from ttmark.shared.whole_file import NotWritten, whole_file

STANDARD_INPUT = "-"
MOST_BYTES = 256 * 2**20
"""What is read of a file: a device or a pipe may never end."""
_BLOCK_BYTES = 2**20
_LONGEST_LINE = 1_000


class TooLong(OSError):
    """The file has more bytes than are read of it."""


def bytes_of(name: str, most: int = MOST_BYTES) -> bytes:
    """The content of a file, or of standard input for `-`.

    Raises:
        OSError: the file cannot be read, or is `TooLong`.
    """
    content = bytearray()
    with nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else Path(name).open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            content += block
            if len(content) > most:
                raise TooLong(errno.EFBIG, f"it has more than {most // 2**20} MiB")
    return bytes(content)


def read_bytes(name: str) -> bytes:
    """The same with one clear line where it fails.

    Raises:
        StartupError: the file cannot be read.
    """
    try:
        return bytes_of(name)
    except OSError as error:
        raise StartupError(f"cannot read {shown(name)}: {error.strerror}") from error


def shown(name: str) -> str:
    return (
        "standard input" if name == STANDARD_INPUT else in_one_line(spelled(name)) or "a file without a name"
    )


def spelled(name: str) -> str:
    r"""A file's name as text: names are bytes, and those that are no UTF-8 become escapes, such as `\xe9`."""
    return os.fsencode(name).decode(errors="backslashreplace")


@contextmanager
def signed_values() -> Iterator[None]:
    """For a block that reads a document as such documents are: whoever signed it may have put in anything.

    Raises:
        StartupError: it lacks a value, or one is of another kind.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StartupError("it is signed, but does not hold what such a file holds") from error


def print_signed(*lines: str) -> None:
    for line in lines:
        typer.echo(in_one_line(line[:_LONGEST_LINE]))


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


_KEY_ROUTE = "/.well-known/ttmark-case-key"
_KEY_BYTES = 10_000


def public_key(path: Path | None, url: str) -> CasePublicKey:
    """The key in the file, or that of the detection service at `url`.

    Raises:
        StartupError: there is none.
    """
    source = str(path) if path is not None else f"{url.rstrip('/')}{_KEY_ROUTE}"
    try:
        return CasePublicKey.from_pem(pem_text(path) if path is not None else blocking(_fetched(source)))
    except NotACaseKey as error:
        raise StartupError(f"{source}: {error}") from error


def pem_text(path: Path) -> str:
    return read_bytes(str(path)).decode(errors="replace")


async def _fetched(url: str) -> str:
    try:
        async with http_client(seconds=10, most_bytes=_KEY_BYTES) as client:
            response = await client.get(url)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StartupError(f"no public key from {url} ({error}); give a file with it") from error
    if response.status_code != 200:
        raise StartupError(f"no public key from {url} (status {response.status_code}); give a file with it")
    return response.text
