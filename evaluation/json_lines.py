"""Files of JSON lines that grow, and whose last line may be cut off."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson


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
