"""The library of `kernels.c`, for this processor."""

import ctypes
import subprocess
from functools import cache
from pathlib import Path

import structlog

from ttmark.shared.watermark.compiled import CompiledSource

SOURCE = CompiledSource.beside(
    Path(__file__).with_name("kernels.c"),
    ("-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
)


@cache
def load_library() -> ctypes.CDLL | None:
    """Compiled at the first call; None where there is none and none can be compiled."""
    try:
        return SOURCE.load()
    except (OSError, subprocess.SubprocessError) as error:
        log = structlog.get_logger("ttmark.engine")
        log.info("kernels_not_compiled", reason=str(error).partition("\n")[0], used="torch's operators")
        return None
