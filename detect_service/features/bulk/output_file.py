"""The output of a run, as JSONL, CSV or Parquet.

What was done is on disk, so a run that was killed goes on where it stopped.
"""

import csv
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ttmark.detect_service.features.bulk.input_formats import BulkError
from ttmark.detect_service.options import DetectionOptions
from ttmark.shared.whole_file import AS_UMASK_SAYS, put_in_place, write_whole

# At the beginning, and behind what a spreadsheet may split at in place of commas, quotes or not.
_FORMULA = re.compile("(?:^|(?<=[;\t\r\n]))(?=[\\s\ufeff]*[=+\\-@＝＋－＠])|^(?=[\t\r])")


def write_csv(lines: Path, out: Path) -> None:
    """Writes the output rows in the JSONL file `lines` to `out` (RFC 4180).

    Lists are fields of JSON. A `'` stands before what a spreadsheet would take for a formula in a text.
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
            return _FORMULA.sub("'", orjson.dumps(value).decode())
        case str():
            return _FORMULA.sub("'", value)
    return value


OUTPUT_ENDINGS = (".jsonl", ".ndjson", ".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class Tally:
    """Of all rows of an output. `unread`: with manifests, which bulk runs do not verify."""

    rows: int
    failed: int
    found: int
    unread: int = 0


@dataclass(frozen=True, slots=True)
class BulkJob:
    """What to read, where to write, what to look for.

    While a run is not complete its lines are in `OUT.partial`, and `OUT.partial.json` says which run
    they belong to. Both are gone when `OUT` appears.

    Attributes:
        keys_fingerprint: names key versions and tokenizers, so that a run is not continued with others.
    """

    source: Path
    out: Path
    options: DetectionOptions
    keys_fingerprint: str

    @property
    def partial(self) -> Path:
        """The lines so far."""
        return self.out.with_name(self.out.name + ".partial")

    @property
    def state(self) -> Path:
        """Which run the lines belong to."""
        return self.out.with_name(self.out.name + ".partial.json")

    def fingerprint(self) -> str:
        """Names the input file as it is now, the options, and the keys."""
        stat = self.source.stat()
        described = {
            "source": str(self.source.resolve()),
            "size": stat.st_size,
            "modified": stat.st_mtime_ns,
            "options": asdict(self.options),
            "keys": self.keys_fingerprint,
        }
        return hashlib.sha256(orjson.dumps(described, option=orjson.OPT_SORT_KEYS)).hexdigest()

    @contextmanager
    def open_partial(self) -> Iterator[tuple[int, BinaryIO]]:
        """Number of rows done, and the file that further lines are appended to.

        Raises:
            BulkError: the output exists or is of no kind that is written, or the lines so far belong to
                another run.
        """
        check_output(self.out)
        fingerprint = self.fingerprint()
        if self.partial.exists() and _state_of(self.state) != fingerprint:
            raise BulkError(f"{self.partial} belongs to another run; delete it to start anew")
        write_whole(self.state, orjson.dumps({"fingerprint": fingerprint}), mode=AS_UMASK_SAYS)
        with self.partial.open("ab+") as file:
            rows, size = _complete_lines(file)
            # A kill can leave half a line; its row is done again.
            file.truncate(size)
            file.seek(size)
            yield rows, file
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> Tally:
        """Turns the lines into the output, in one step that is either done or not."""
        tally = _tally_of(self.partial)
        complete(self.partial, self.out)
        self.state.unlink()
        return tally


def check_output(out: Path) -> None:
    """Whether an output can be begun there. Raises BulkError: it exists, or is of no kind that is written."""
    if out.suffix not in OUTPUT_ENDINGS:
        raise BulkError(f"{out} is none of {', '.join(OUTPUT_ENDINGS)}")
    if out.exists():
        raise BulkError(f"{out} exists already")


def complete(lines: Path, out: Path) -> None:
    """Turns the file of all lines into the output that the ending of `out` names, in one step."""
    if out.suffix not in (".parquet", ".csv"):
        put_in_place(lines, out)
        return
    unfinished = out.with_name(out.name + ".unfinished")
    if out.suffix == ".csv":
        write_csv(lines, unfinished)
    else:
        from ttmark.detect_service.features.bulk.parquet_file import (
            write_parquet,  # needs an optional dependency
        )

        write_parquet(lines, unfinished)
    put_in_place(unfinished, out)
    lines.unlink()


def _state_of(path: Path) -> str | None:
    try:
        return str(orjson.loads(path.read_bytes())["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _complete_lines(file: BinaryIO) -> tuple[int, int]:
    """How many complete lines a file holds and where the last one ends."""
    file.seek(0)
    rows = size = read = 0
    while block := file.read(2**20):
        rows += block.count(b"\n")
        last = block.rfind(b"\n")
        if last >= 0:
            size = read + last + 1
        read += len(block)
    return rows, size


def _tally_of(lines: Path) -> Tally:
    # What is looked for cannot stand inside of a string, where quotes are escaped.
    rows = failed = found = unread = 0
    with lines.open("rb") as file:
        for line in file:
            rows += 1
            failed += not line.endswith(b'"error":null}\n')
            found += b'"verdict":"watermarked"' in line
            unread += b'"metadata":["not_examined"' in line
    return Tally(rows, failed, found, unread)
