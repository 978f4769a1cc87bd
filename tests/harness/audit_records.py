"""Records of the audit trail, read from a folder."""

import json
from pathlib import Path
from typing import Any

from ttmark.services.features.audit.segments import segments


def records(folder: Path) -> list[dict[str, Any]]:
    lines = [line for parts in segments(folder).values() for part in parts for line in part.lines()]
    return [json.loads(line) for line in lines]


def events(folder: Path) -> list[dict[str, Any]]:
    return [record["event"] for record in records(folder)]
