"""The processor: what figures about time depend on, and how many threads it has for us."""

import os
import platform
from pathlib import Path


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The name that the kernel knows, or else what the platform calls itself."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def usable_cores() -> int:
    """Cores that this process may use; all of the machine's where the system does not say, as on macOS."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
