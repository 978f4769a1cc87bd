"""What one file may cost, and how many are read at a time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionLimits:
    """Limits on reading files.

    Attributes:
        workers: processes that read files; each reads one at a time.
        queue: files that may wait for a process.
        cpu_seconds: CPU time for a file.
        seconds: time for a file on the clock, waiting for a process not included.
        memory_bytes: address space of a process.
        text_bytes: the text of a file, in UTF-8.
    """

    workers: int = 2
    queue: int = 16
    cpu_seconds: int = 5
    seconds: float = 30.0
    memory_bytes: int = 512 * 2**20
    text_bytes: int = 16 * 2**20
