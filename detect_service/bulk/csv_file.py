"""Output rows as a CSV file."""

import csv
import re
from pathlib import Path
from typing import Any

import orjson

_FORMULA = re.compile("[=+\\-@\t\r]")


def write_csv(lines: Path, out: Path) -> None:
    """Writes the output rows in the JSONL file `lines` to `out` (RFC 4180).

    Lists are fields of JSON. A text that a spreadsheet would take for a formula begins with `'`.
    """
    with lines.open("rb") as file, out.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target)
        for number, line in enumerate(file):
            row = orjson.loads(line)
            if number == 0:
                writer.writerow(row)
            writer.writerow(map(_cell, row.values()))


def _cell(value: Any) -> Any:
    match value:
        case list():
            return orjson.dumps(value).decode()
        case str() if _FORMULA.match(value):
            return f"'{value}"
    return value
