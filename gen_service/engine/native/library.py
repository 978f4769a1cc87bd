"""Compiles `kernels.c` and keeps the library beside it, as Python keeps its bytecode."""

import ctypes
import errno
import hashlib
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import structlog

from ttmark.shared.whole_file import put_in_place

_SOURCE = Path(__file__).with_name("kernels.c")
_KEPT = Path(__file__).with_name("__compiled__")
_FLAGS = ("-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-shared", "-fPIC")
_SECONDS = 180.0
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)

_LEVELS: dict[str, tuple[tuple[str, tuple[str, ...], frozenset[str]], ...]] = {
    "x86_64": (
        (
            "x86-64-v4",
            ("-march=x86-64-v4", "-mprefer-vector-width=512"),
            frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma"}),
        ),
        ("x86-64-v3", ("-march=x86-64-v3",), frozenset({"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"})),
    ),
    "aarch64": (("armv8-a", ("-march=armv8-a",), frozenset({"asimd"})),),
}
"""By machine: levels of instructions, the highest first, with the compiler's flags and what they need."""


@cache
def load_library() -> ctypes.CDLL | None:
    """The library for this processor; None where there is none and none can be compiled."""
    level = next(iter(_usable_levels()), None)
    if level is None:
        return None
    log = structlog.get_logger("ttmark.engine")
    try:
        return _load(*level)
    except (OSError, subprocess.SubprocessError) as error:
        log.info("kernels_not_compiled", reason=str(error).partition("\n")[0], used="torch's operators")
        return None


def compile_all(folder: Path = _KEPT) -> list[Path]:
    """Compiles for every level of this machine's kind, for an image that has no compiler later.

    Raises:
        OSError, subprocess.SubprocessError: there is no compiler, or it failed.
    """
    return [_compile(folder, name, flags) for name, flags, _ in _LEVELS.get(platform.machine(), ())]


def _load(name: str, flags: tuple[str, ...]) -> ctypes.CDLL:
    kept = _KEPT / _file_name(name, flags)
    if kept.exists():
        return ctypes.CDLL(str(kept))
    try:
        return ctypes.CDLL(str(_compile(_KEPT, name, flags)))
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        with tempfile.TemporaryDirectory() as scratch:
            return ctypes.CDLL(str(_compile(Path(scratch), name, flags)))


def _compile(folder: Path, name: str, flags: tuple[str, ...]) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc) on this machine")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / _file_name(name, flags)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / target.name
        command = [compiler, *_FLAGS, *flags, "-o", str(made), str(_SOURCE), "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
        put_in_place(made, target)
    return target


def _file_name(name: str, flags: tuple[str, ...]) -> str:
    """Another source or other flags are another library."""
    digest = hashlib.sha256(" ".join((*_FLAGS, *flags)).encode() + _SOURCE.read_bytes()).hexdigest()[:16]
    return f"kernels-{name}-{digest}.so"


def _usable_levels() -> list[tuple[str, tuple[str, ...]]]:
    known = _processor_flags()
    return [(name, flags) for name, flags, needs in _LEVELS.get(platform.machine(), ()) if needs <= known]


def _processor_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = (line.partition(":")[2] for line in lines if line.lower().startswith(("flags", "features")))
    return frozenset(next(flags, "").split())
