"""Detection over files of any size: JSONL or Parquet in, one row out for each row in."""

from ttmark.detect_service.bulk.examiner import Examiner
from ttmark.detect_service.bulk.input_formats import BulkError
from ttmark.detect_service.bulk.output_file import BulkJob
from ttmark.detect_service.bulk.run import Progress, Workers, run_bulk

__all__ = [
    "BulkError",
    "BulkJob",
    "Examiner",
    "Progress",
    "Workers",
    "run_bulk",
]
