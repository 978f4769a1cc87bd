"""Memory of this process: what it holds, what it has held at most, and what it can do without."""

import ctypes
import gc
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from ttmark.shared.observability.gauges import watch_gauge

_STATUS = Path("/proc/self/status")
_FIELDS = {"VmRSS": "resident", "VmHWM": "peak"}


def process_memory(status: Path = _STATUS) -> dict[str, int]:
    """Bytes that are `resident`, and that were at most (`peak`); empty where the system does not say."""
    try:
        lines = [line.split() for line in status.read_text().splitlines()]
    except OSError:
        return {}
    known = {name.rstrip(":"): rest for name, *rest in filter(None, lines)}
    return {ours: 1024 * int(known[theirs][0]) for theirs, ours in _FIELDS.items() if theirs in known}


def watch_memory(registry: CollectorRegistry) -> None:
    watch_gauge(
        registry,
        "process_resident_memory_peak_bytes",
        "Most resident memory since the start, in bytes.",
        lambda: process_memory().get("peak", 0),
    )


def release_free_memory() -> None:
    """Gives memory that nobody uses back to the system, of which glibc keeps much."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)
