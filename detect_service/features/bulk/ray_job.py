"""The same examination as a Ray Data job, for corpora beyond one machine."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ttmark.detect_service.features.bulk.input_formats import BulkError
from ttmark.detect_service.features.bulk.parquet_file import output_schema
from ttmark.detect_service.features.bulk.row_format import InputRow
from ttmark.detect_service.features.bulk.run import MakeExaminer

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

ROWS_IN_A_BATCH = 128


class BatchExaminer:
    """An actor of the job; opens the keys itself, from the settings of the node that it runs on.

    Args:
        lines: rows are lines of JSON in a column `text`, else objects of their columns.
    """

    def __init__(self, make: MakeExaminer, lines: bool) -> None:
        self._examiner = make()
        self._lines = lines

    def __call__(self, batch: "pa.Table") -> "pa.Table":
        """Output rows of a batch of input rows, in their order; `row` is null: rows have no number here."""
        import pyarrow as pa

        rows = [InputRow(number, self._content(row)) for number, row in enumerate(batch.to_pylist())]
        outputs = [{**output, "row": None} for output in self._examiner.output_rows(rows)]
        return pa.Table.from_pylist(outputs, schema=output_schema())

    def _content(self, row: dict[str, Any]) -> bytes:
        return str(row["text"]).encode() if self._lines else orjson.dumps(row, default=str)


def run_on_ray(source: Path, out: Path, make_examiner: MakeExaminer, *, address: str | None) -> int:
    """Examines every row of JSONL or Parquet files on a Ray cluster.

    Args:
        source: a file or a folder, under the same path on every node.
        out: a folder that does not exist yet, for Parquet files.
        address: of the cluster; None starts one on this machine.

    Returns:
        The number of rows.

    Raises:
        BulkError: Ray is not installed, the output exists, or the input is of another kind.
    """
    try:
        ray: Any = import_module("ray")  # optional, and only partly typed
    except ModuleNotFoundError as error:
        raise BulkError("--ray needs Ray: pip install 'ttmark[ray]'") from error
    if out.exists():
        raise BulkError(f"{out} exists already")
    ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    files = _files(source)
    lines = files[0].suffix != ".parquet"
    names = [str(path) for path in files]
    # As lines: a JSON reader would stop at the first row that is malformed.
    data = ray.data.read_text(names, drop_empty_lines=False) if lines else ray.data.read_parquet(names)
    actors = max(1, int(ray.cluster_resources().get("CPU", 1)) - 1)
    examined = data.map_batches(
        BatchExaminer,
        fn_constructor_args=(make_examiner, lines),
        batch_size=ROWS_IN_A_BATCH,
        batch_format="pyarrow",
        concurrency=(1, actors),
    )
    examined.write_parquet(str(out))
    return int(data.count())


def _files(source: Path) -> list[Path]:
    files = [source] if source.is_file() else sorted(path for path in source.glob("*") if path.is_file())
    kinds = {path.suffix for path in files}
    if kinds not in ({".jsonl"}, {".ndjson"}, {".parquet"}):
        raise BulkError(f"{source} is no .jsonl or .parquet file, nor a folder of one of the two kinds")
    return files
