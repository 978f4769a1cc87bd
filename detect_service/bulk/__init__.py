"""Detection over files of any size: JSONL or Parquet in, one row out for each row in."""

from ttmark.detect_service.bulk.examiner import Examiner
from ttmark.detect_service.bulk.job import BulkJob
from ttmark.detect_service.bulk.source import BulkError
from ttmark.detect_service.bulk.workers import Progress, Workers, run_bulk

__all__ = [
    "BulkError",
    "BulkJob",
    "Examiner",
    "Progress",
    "Workers",
    "run_bulk",
]
