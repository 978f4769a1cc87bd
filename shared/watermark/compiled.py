"""Compiles a source in C and keeps the library beside it, as Python keeps its bytecode."""

import ctypes
import errno
import hashlib
import platform
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 180.0
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
_SHARED = ("-shared", "-fPIC")


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """Instructions that a processor may have: the compiler's flags for them, and what they need."""

    name: str
    flags: tuple[str, ...]
    needs: frozenset[str]


_AVX512 = frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma"})
_V4 = ("-march=x86-64-v4", "-mprefer-vector-width=512")
_VNNI, _AMX = ("-mavx512vnni",), ("-mavx512bf16", "-mamx-tile", "-mamx-bf16")
_LEVELS: dict[str, tuple[InstructionSet, ...]] = {
    "x86_64": (
        InstructionSet(
            "x86-64-v4-amx", (*_V4, *_VNNI, *_AMX), _AVX512 | {"avx512_vnni", "avx512_bf16", "amx_bf16"}
        ),
        InstructionSet("x86-64-v4-vnni", (*_V4, *_VNNI), _AVX512 | {"avx512_vnni"}),
        InstructionSet("x86-64-v4", _V4, _AVX512),
        InstructionSet(
            "x86-64-v3", ("-march=x86-64-v3",), frozenset({"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"})
        ),
    ),
    "aarch64": (InstructionSet("armv8-a", ("-march=armv8-a",), frozenset({"asimd"})),),
}
"""By machine, the highest level first."""


@dataclass(frozen=True, slots=True)
class CompiledSource:
    """A source and its libraries, one for each level of instructions.

    Attributes:
        flags: of the compiler, for every level.
        folder: where libraries are kept.
    """

    source: Path
    flags: tuple[str, ...]
    folder: Path

    @classmethod
    def beside(cls, source: Path, flags: tuple[str, ...]) -> "CompiledSource":
        return cls(source, (*flags, *_SHARED), source.with_name("__compiled__"))

    def load(self) -> ctypes.CDLL:
        """The library for this processor, compiled if it is not there.

        For this process alone if nothing can be written.

        Raises:
            OSError, subprocess.SubprocessError: no level is for this processor, no compiler, or it failed.
        """
        levels = usable_levels()
        if not levels:
            raise OSError(f"no instructions of {platform.machine()} that it could be compiled for")
        *higher, lowest = levels
        for level in higher:
            with suppress(subprocess.CalledProcessError):  # an older compiler knows fewer instructions
                return self._load(level)
        return self._load(lowest)

    def _load(self, level: InstructionSet) -> ctypes.CDLL:
        kept = self.folder / self.file_name(level)
        if kept.exists():
            return ctypes.CDLL(str(kept))
        try:
            return ctypes.CDLL(str(self.compile(self.folder, level)))
        except OSError as error:
            if error.errno not in _NOT_WRITABLE:
                raise
            with tempfile.TemporaryDirectory() as scratch:
                return ctypes.CDLL(str(self.compile(Path(scratch), level)))

    def compile_all(self, folder: Path | None = None) -> list[Path]:
        """Compiles for every level of this machine's kind, for an image that has no compiler later.

        Raises:
            OSError, subprocess.SubprocessError: there is no compiler, or it failed.
        """
        return [self.compile(folder or self.folder, level) for level in all_levels()]

    def compile(self, folder: Path, level: InstructionSet) -> Path:
        """The library in `folder`, made anew.

        Raises:
            OSError, subprocess.SubprocessError: there is no compiler, or it failed.
        """
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise FileNotFoundError("no C compiler (cc) on this machine")
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / self.file_name(level)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / target.name
            command = [compiler, *self.flags, *level.flags, "-o", str(made), str(self.source), "-lm"]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
            made.replace(target)
        return target

    def file_name(self, level: InstructionSet) -> str:
        """Another source or other flags are another library."""
        digest = hashlib.sha256(" ".join((*self.flags, *level.flags)).encode() + self.source.read_bytes())
        return f"{self.source.stem}-{level.name}-{digest.hexdigest()[:16]}.so"


def all_levels() -> tuple[InstructionSet, ...]:
    return _LEVELS.get(platform.machine(), ())


def usable_levels() -> list[InstructionSet]:
    known = _processor_flags()
    return [level for level in all_levels() if level.needs <= known]


def _processor_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = (line.partition(":")[2] for line in lines if line.lower().startswith(("flags", "features")))
    return frozenset(next(flags, "").split())
