"""Detection over files of any size: JSONL or Parquet in, one row out for each row in."""

from detect_service.bulk.errors import BulkError
from detect_service.bulk.examiner import Examiner
from detect_service.bulk.job import BulkJob
from detect_service.bulk.options import BulkOptions
from detect_service.bulk.run import Progress, run_bulk
from detect_service.bulk.workers import ThisProcess, Workers

__all__ = [
    "BulkError",
    "BulkJob",
    "BulkOptions",
    "Examiner",
    "Progress",
    "ThisProcess",
    "Workers",
    "run_bulk",
]
