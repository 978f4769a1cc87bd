"""Text out of files; untrusted ones are read in processes that may die."""

from ttmark.detect_service.features.files.extraction import (
    Extraction,
    ExtractionLimits,
    LimitExceeded,
    UnreadableFile,
)
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionBusy, ExtractionWorkers

__all__ = [
    "Extraction",
    "ExtractionBusy",
    "ExtractionLimits",
    "ExtractionWorkers",
    "LimitExceeded",
    "UnreadableFile",
]
