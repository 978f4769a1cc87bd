"""What all tests share: a place for the figures of the full tier."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def record_result() -> Callable[[str, str, str], None]:
    """Puts a row into the table of results that TTMARK_RESULTS names; without it, does nothing."""

    def record(fault: str, promise: str, measured: str) -> None:
        if "TTMARK_RESULTS" not in os.environ:
            return
        path = Path(os.environ["TTMARK_RESULTS"])
        head = [
            "# Reliability",
            "",
            "Written by `make soak TTMARK_RESULTS=docs/results/reliability.md`, against a real redis-server.",
            "",
        ]
        rows = path.read_text().splitlines() if path.exists() else head
        kept = [row for row in rows if not row.startswith(f"| {fault} |")]
        if "|---|---|---|---|" not in kept:
            kept += ["| fault | promise | measured | day |", "|---|---|---|---|"]
        day = time.strftime("%Y-%m-%d", time.gmtime())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*kept, f"| {fault} | {promise} | {measured} | {day} |"]) + "\n")

    return record
