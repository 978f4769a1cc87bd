"""Prometheus metrics of reading files."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import ClientDisconnect

from ttmark.detect_service.extraction import ExtractionBusy, UnreadableFile
from ttmark.detect_service.extraction.formats import FORMATS, format_of
from ttmark.detect_service.extraction.unreadable_file import Reason

OUTCOMES = ("read", "refused", "abandoned", "failed")
REFUSALS = (*get_args(Reason), "busy")
_UNKNOWN = "other"
_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class ExtractionMetrics:
    """Time by format and outcome, and refused files by reason."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "ttmark_extract_seconds",
            "Time to the text of a file or to its refusal, waiting included.",
            ["format", "outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._refusals = Counter(
            "ttmark_extract_refusals", "Files that were not read.", ["reason"], registry=registry
        )
        for reason in REFUSALS:
            self._refusals.labels(reason)
        for name in FORMATS:
            self._seconds.labels(name, "read")

    @contextmanager
    def file(self, filename: str) -> Iterator[None]:
        """Times one file and records how it ended, by the exception that leaves the block."""
        started = time.perf_counter()
        outcome = "failed"
        try:
            yield
            outcome = "read"
        except UnreadableFile as error:
            outcome = "refused"
            self._refusals.labels(error.reason).inc()
            raise
        except ExtractionBusy:
            outcome = "refused"
            self._refusals.labels("busy").inc()
            raise
        except ClientDisconnect:
            outcome = "abandoned"
            raise
        finally:
            self._seconds.labels(_format(filename), outcome).observe(time.perf_counter() - started)


def _format(filename: str) -> str:
    try:
        return format_of(filename)
    except UnreadableFile:
        return _UNKNOWN
