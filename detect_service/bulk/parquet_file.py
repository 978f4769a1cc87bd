"""Output rows as a Parquet file."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

_ROWS_IN_A_GROUP = 8192


def output_schema() -> pa.Schema:
    """Columns of an output row; see `row_format.result_row`."""
    segment = pa.struct(
        [
            ("start_token", pa.int64()),
            ("end_token", pa.int64()),
            ("start_char", pa.int64()),
            ("end_char", pa.int64()),
            ("log10_e_value", pa.float64()),
            ("key_id", pa.string()),
            ("key_version", pa.int64()),
            ("pool_key", pa.int64()),
            ("payload", pa.int64()),
        ]
    )
    return pa.schema(
        [
            ("row", pa.int64()),
            ("id", pa.string()),
            ("verdict", pa.string()),
            ("p_value", pa.float64()),
            ("log10_p", pa.float64()),
            ("z", pa.float64()),
            ("tokens", pa.int64()),
            ("scored_blocks", pa.int64()),
            ("hypotheses", pa.int64()),
            ("tokens_needed", pa.int64()),
            ("tokens_typical", pa.int64()),
            ("key_id", pa.string()),
            ("key_version", pa.int64()),
            ("profile", pa.string()),
            ("pool_key", pa.int64()),
            ("payload", pa.int64()),
            ("pool_keys_found", pa.int64()),
            ("basis", pa.string()),
            ("foreign_marks", pa.list_(pa.string())),
            ("metadata", pa.list_(pa.string())),
            ("log10_e", pa.float64()),
            ("reader", pa.string()),
            ("scope", pa.string()),
            ("marked_share", pa.float64()),
            ("marked_share_low", pa.float64()),
            ("marked_share_high", pa.float64()),
            ("weak", pa.bool_()),
            ("segments", pa.list_(segment)),
            ("error", pa.string()),
        ]
    )


def write_parquet(lines: Path, out: Path) -> None:
    """Writes the output rows in the JSONL file `lines` to `out`, a row group at a time."""
    schema = output_schema()
    with lines.open("rb") as file, parquet.ParquetWriter(out, schema) as writer:
        for rows in _groups(file):
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))


def _groups(lines: Iterator[bytes]) -> Iterator[list[dict[str, Any]]]:
    while rows := [orjson.loads(line) for line in islice(lines, _ROWS_IN_A_GROUP)]:
        yield rows
