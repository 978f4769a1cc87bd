"""JSON on disk: values that are written whole, and lines that grow and of which the last may be cut off."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole


def write_kept(path: Path, value: object) -> None:
    """Writes a value, which may have dataclasses, to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n", mode=AS_UMASK_SAYS)


def read_lines(file: Path) -> list[Any]:
    """What the lines hold; one that was cut off when a process was killed is left out."""
    found = []
    for line in file.read_bytes().splitlines() if file.is_file() else ():
        with suppress(orjson.JSONDecodeError):
            found.append(orjson.loads(line))
    return found


def append_lines(file: Path, values: Iterable[object]) -> None:
    """Adds a line for each value, behind a line that was cut off too; they are on disk when this returns."""
    with file.open("a+b") as lines:
        if lines.seek(0, 2):
            lines.seek(-1, 2)
            if lines.read(1) != b"\n":
                lines.write(b"\n")
        lines.write(b"".join(orjson.dumps(value) + b"\n" for value in values))
