"""`python -m ttmark.detect_service.features.files.workers.worker LIMITS`: reads files until its input ends.

It holds no keys and no tokens, writes no files, and ends when a file takes more than it may.
"""

import json
import logging
import math
import os
import resource
import sys
import time
from contextlib import suppress
from typing import Any

from ttmark.detect_service.features.files.text.extraction import (
    MANIFEST,
    ExtractionLimits,
    LimitExceeded,
    UnreadableFile,
)
from ttmark.detect_service.features.files.workers.confinement import confine
from ttmark.detect_service.features.files.workers.worker_process import (
    KEPT,
    LONGEST_LINE,
    AnswerHead,
    manifest_request,
    part_slices,
)

_LESS_URGENT_THAN_THE_SERVICE = 5
# What the kernel compares with the limit (CPUCLOCK_PROF) is a few per cent more than what Python reads.
_COUNTED = ~0 << 3 if sys.platform == "linux" else time.CLOCK_PROCESS_CPUTIME_ID


def main() -> None:
    """Answers each file with its text or with what is wrong with it."""
    limits = ExtractionLimits(**json.loads(sys.argv[1]))
    os.nice(_LESS_URGENT_THAN_THE_SERVICE)
    logging.disable()  # libraries would tell what is in the files
    # Before they could no longer be opened, and so that the first file need not wait.
    from ttmark.detect_service.features.files.formats.readers_by_format import extract_text

    with suppress(ImportError):
        extract_text(MANIFEST, manifest_request(b"", None))

    _limit(resource.RLIMIT_AS, limits.memory_bytes)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    confine()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while data := source.readline(LONGEST_LINE):
        head = json.loads(data)
        answer, text = _read(head["filename"], source.read(head["size"]), limits)
        sink.write(answer.model_dump_json().encode() + b"\n")
        sink.write(text)
        sink.flush()
        if answer.reason == "memory":
            return  # what is left of the space may be too scattered for the next file


def _read(filename: str, content: bytes, limits: ExtractionLimits) -> tuple[AnswerHead, bytes]:
    from ttmark.detect_service.features.files.formats.readers_by_format import extract_text

    # Whole seconds, counted from the process's start; when they are over the system ends the process.
    _limit(resource.RLIMIT_CPU, max(1, math.floor(time.clock_gettime(_COUNTED) + limits.cpu_seconds)))
    try:
        found = extract_text(filename, content)
        text = b"".join(part_slices(found.parts)) if found.parts else found.text.encode("utf-8")
        if len(text) > limits.text_bytes:
            message = f"The text of the file is larger than the limit of {limits.text_bytes} bytes."
            raise LimitExceeded(message, "text")
    except (UnreadableFile, MemoryError) as error:
        if isinstance(error, MemoryError):
            mebibytes = limits.memory_bytes // 2**20
            message = f"Reading the file takes more memory than the limit of {mebibytes} MiB."
            error = LimitExceeded(message, "memory")
        limit = isinstance(error, LimitExceeded)
        return AnswerHead(reason=error.reason, limit=limit, message=str(error)), b""
    finally:
        _limit(resource.RLIMIT_CPU, resource.RLIM_INFINITY)
    kept: dict[str, Any] = {name: getattr(found, name) for name in KEPT}
    return AnswerHead(size=len(text), several=bool(found.parts), **kept), text


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        most = hard if most == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError, OSError):  # not every system has every limit; the one on the clock remains
        resource.setrlimit(kind, (most, hard))


if __name__ == "__main__":
    main()
