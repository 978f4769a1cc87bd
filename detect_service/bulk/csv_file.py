"""Output rows as a CSV file."""

import csv
from pathlib import Path

import orjson


def write_csv(lines: Path, out: Path) -> None:
    """Writes the output rows in the JSONL file `lines` to `out` (RFC 4180); lists are fields of JSON."""
    with lines.open("rb") as file, out.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target)
        for number, line in enumerate(file):
            row = orjson.loads(line)
            row |= {
                name: orjson.dumps(value).decode() for name, value in row.items() if isinstance(value, list)
            }
            if number == 0:
                writer.writerow(row)
            writer.writerow(row.values())
