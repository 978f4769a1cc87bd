"""Reads rows from JSONL, CSV or Parquet, a few at a time, from any row on."""

import csv
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import orjson

from ttmark.detect_service.features.bulk.row_format import InputRow


class BulkError(Exception):
    """The run cannot start or go on; the message is one line that says why."""


LONGEST_ROW = 64 * 2**20
_COLUMNS = ("id", "text", "token_ids")
_BATCH_ROWS = 256


def open_source(path: Path) -> "JsonLines | CsvRows | ParquetRows":
    """The file's reader, by its ending. Raises BulkError: it is missing, or of none of the three kinds."""
    if path.is_dir():
        raise BulkError(f"{path} is a folder: `ttmark detect {path}` examines the files in it")
    if not path.is_file():
        raise BulkError(f"there is no file {path}")
    if path.suffix in (".jsonl", ".ndjson"):
        return JsonLines(path)
    if path.suffix == ".parquet":
        return ParquetRows(path)
    if path.suffix == ".csv":
        return CsvRows(path)
    raise BulkError(f"{path} is neither .jsonl, .csv nor .parquet")


class JsonLines:
    """One JSON object in each line; an empty line is a row without content.

    Attributes:
        total: what `position` reaches at the end.
        position: how much of the file has been read: bytes, of Parquet rows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.total = path.stat().st_size
        self.position = 0

    def rows(self, first: int) -> Iterator[InputRow]:
        with self._path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_ROW):
                self.position += len(line)
                too_long = not line.endswith(b"\n") and len(line) == LONGEST_ROW
                rest = line
                while too_long and rest and not rest.endswith(b"\n"):
                    rest = file.readline(LONGEST_ROW)
                    self.position += len(rest)
                if number >= first:
                    yield (
                        InputRow(number, None, f"the row is longer than {LONGEST_ROW} bytes")
                        if too_long
                        else InputRow(number, line.rstrip(b"\r\n"))
                    )
                number += 1


class CsvRows:
    """The columns `text` or `token_ids` (a JSON list), and `id` where there is one; UTF-8, with a head."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.total = path.stat().st_size
        self.position = 0
        csv.field_size_limit(LONGEST_ROW)
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            try:
                head = next(csv.reader(file), [])
            except csv.Error as error:
                raise BulkError(f"{path} is not a CSV file: {error}") from error
        self._columns = [name if name in _COLUMNS else None for name in head]
        if not {"text", "token_ids"} & set(self._columns):
            raise BulkError(f"{path} has neither a column text nor token_ids")

    def rows(self, first: int) -> Iterator[InputRow]:
        # What is not UTF-8 becomes a lone surrogate, which no row may hold: that row is at fault alone.
        with (
            self._path.open("rb") as raw,
            TextIOWrapper(raw, "utf-8-sig", "surrogateescape", newline="") as file,
        ):
            reader = csv.reader(file)
            next(reader, None)
            try:
                for number, fields in enumerate(reader):
                    self.position = raw.tell()
                    if number >= first:
                        yield self._row(number, fields)
            except csv.Error as error:
                raise BulkError(f"{self._path}, line {reader.line_num}: {error}") from error

    def _row(self, number: int, fields: list[str]) -> InputRow:
        row: dict[str, Any] = {
            name: field for name, field in zip(self._columns, fields, strict=False) if name
        }
        if not row.get("id"):
            row.pop("id", None)
        if not row.get("token_ids"):
            row.pop("token_ids", None)
        elif not row.get("text"):
            row.pop("text", None)
        try:
            if "token_ids" in row:
                row["token_ids"] = orjson.loads(row["token_ids"])
            return InputRow(number, orjson.dumps(row))
        except (orjson.JSONDecodeError, TypeError) as error:
            return InputRow(number, None, f"the row cannot be read: {error}")


class ParquetRows:
    """The columns `text` or `token_ids`, and `id` where there is one."""

    def __init__(self, path: Path) -> None:
        try:
            from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]
        except ModuleNotFoundError as error:
            raise BulkError("Parquet needs pyarrow: pip install 'ttmark[bulk]'") from error
        try:
            self._file = parquet.ParquetFile(path)
        except (ArrowException, OSError) as error:
            raise BulkError(f"{path} is not a Parquet file: {error}") from error
        self._columns = [name for name in self._file.schema_arrow.names if name in _COLUMNS]
        if not {"text", "token_ids"} & set(self._columns):
            raise BulkError(f"{path} has neither a column text nor token_ids")
        self.total = self._file.metadata.num_rows
        self.position = 0

    def rows(self, first: int) -> Iterator[InputRow]:
        """The rows from number `first` on; row groups before it are not read."""
        for group in range(self._file.num_row_groups):
            size = self._file.metadata.row_group(group).num_rows
            if self.position + size <= first:
                self.position += size
                continue
            batches = self._file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=self._columns)
            for batch in batches:
                for row in batch.to_pylist():
                    number = self.position
                    self.position += 1
                    if number >= first:
                        yield InputRow(number, orjson.dumps(row, default=str))
