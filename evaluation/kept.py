"""Intermediate figures that a run keeps in its folder, as JSON."""

from pathlib import Path
from typing import TypeVar

import orjson
from pydantic import TypeAdapter

Kept = TypeVar("Kept")


def read_kept(path: Path, kind: type[Kept]) -> Kept | None:
    """The dataclass in `path`, or None if there is no such file."""
    return TypeAdapter(kind).validate_json(path.read_bytes()) if path.is_file() else None


def write_kept(path: Path, value: object) -> None:
    """Writes a dataclass to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
