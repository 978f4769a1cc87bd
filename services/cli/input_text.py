"""Texts that a command is given as files or on standard input."""

import sys
from pathlib import Path

from ttmark.services.runtime import StartupError, in_one_line

STANDARD_INPUT = "-"


def bytes_of(name: str) -> bytes:
    """The content of a file, or of standard input for `-`.

    Raises:
        OSError: the file cannot be read.
    """
    return sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()


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
    """What messages call a file."""
    return "standard input" if name == STANDARD_INPUT else in_one_line(name)
