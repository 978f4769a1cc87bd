"""Output rows as a Parquet file."""

from itertools import islice
from pathlib import Path

import orjson
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

from ttmark.detect_service.features.bulk.row_format import COLUMNS

_ROWS_IN_A_GROUP = 8192


_SEGMENT = pa.struct(
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
_LISTS = {"strings": pa.list_(pa.string()), "segments": pa.list_(_SEGMENT)}


def output_schema() -> pa.Schema:
    return pa.schema([(name, _LISTS.get(kind) or pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])


def write_parquet(lines: Path, out: Path) -> None:
    """Writes the output rows in the JSONL file `lines` to `out`, a row group at a time."""
    schema = output_schema()
    with lines.open("rb") as file, parquet.ParquetWriter(out, schema) as writer:
        while rows := [orjson.loads(line) for line in islice(file, _ROWS_IN_A_GROUP)]:
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
