"""What passes cost, measured at start on the model itself.

The choice of number format and CPU threads follows from it and is kept in a file, with what was seen of the
model then: the next start on this machine measures nothing.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import orjson
import structlog
import torch

from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.model.loaded_model import usable_device
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.native import find_kernels
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.cpu import processor_name
from ttmark.shared.whole_file import AS_UMASK_SAYS, make_folder, write_whole

_REPEATS = 3
_CONFIGS = ("config.json", "generation_config.json")
_WEIGHTS = ("*.safetensors", "*.bin")
_COMPARED_ROWS = (4, 64)  # of a pass in ordinary decoding, and of one with probes


def seconds_of(run: Callable[[int], object], rows: int) -> float:
    """The fastest of three times that `run(rows)` takes."""
    times = [time.perf_counter()]
    for _ in range(_REPEATS):
        run(rows)
        times.append(time.perf_counter())
    return min(after - before for before, after in pairwise(times))


def fewest_seconds(runner: Runner, threads: Sequence[int]) -> tuple[float, int]:
    """Time of a pass of each measured size with the number of threads that is fastest, and that number.

    What counts is the fastest of three.
    """
    return min((_seconds(runner, count), count) for count in threads)


def _seconds(runner: Runner, threads: int) -> float:
    torch.set_num_threads(threads)
    return sum(seconds_of(runner.probe_once, rows) for rows in _COMPARED_ROWS)


@dataclass(frozen=True, slots=True)
class Choice:
    """How a model runs fastest.

    Attributes:
        plain: as JSON, what `open_llama` and `ModelFacts` take: the model was seen to run without
            transformers; None: it needs that.
    """

    dtype: str
    threads: int
    plain: dict[str, Any] | None = None


def choices_among(settings: EngineSettings) -> list[Choice]:
    """What there is to choose from.

    Raises:
        ModelLoadError: an unknown dtype.
    """
    return [Choice(*each) for each in product(_dtypes(settings), _thread_counts(settings))]


def _dtypes(settings: EngineSettings) -> tuple[str, ...]:
    if settings.dtype == "auto":
        return ("bfloat16", "float32") if usable_device(settings.device).type == "cpu" else ("auto",)
    if not isinstance(getattr(torch, settings.dtype, None), torch.dtype):
        raise ModelLoadError(f"unknown dtype {settings.dtype!r}")
    return (settings.dtype,)


def _thread_counts(settings: EngineSettings) -> tuple[int, ...]:
    if settings.threads == "auto":
        return tuple(sorted({1, own_threads()}))
    return (settings.threads or torch.get_num_threads(),)


@cache
def own_threads() -> int:
    """Threads of torch before a model is loaded, which may leave it at another number."""
    return torch.get_num_threads()


@dataclass(frozen=True, slots=True)
class ChoiceFile:
    """Choices by what they depend on, in a JSON file that may be deleted at any time."""

    path: Path

    def find(self, key: str, options: Iterable[Choice]) -> Choice | None:
        """The choice that was kept, if it is still an option. A file that cannot be read holds none."""
        try:
            kept = Choice(**self._read()[key])
        except (LookupError, TypeError):
            return None
        return kept if replace(kept, plain=None) in options else None

    def keep(self, key: str, choice: Choice) -> None:
        """Adds a choice. Where nothing can be written, the next start measures again."""
        kept = self._read() | {key: asdict(choice)}
        try:
            make_folder(self.path.parent, mode=0o700)  # as a state folder has to be
            write_whole(self.path, orjson.dumps(kept, option=orjson.OPT_INDENT_2), mode=AS_UMASK_SAYS)
        except OSError as error:
            log = structlog.get_logger("ttmark.engine")
            log.info("choice_not_kept", path=str(self.path), error=error.strerror)

    def _read(self) -> dict[str, Any]:
        try:
            kept = orjson.loads(self.path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return {}
        return kept if isinstance(kept, dict) else {}


def choice_key(folder: Path, options: Iterable[Choice], quantization: str) -> str:
    """What a choice depends on: processor, cores, packages, the model's files, what there is to choose from.

    Weights count by name, size and time of change.
    """
    weights = sorted(path for ending in _WEIGHTS for path in folder.glob(ending))
    files = [(path.name, (status := path.stat()).st_size, status.st_mtime_ns) for path in weights]
    configs = [path.read_bytes() for name in _CONFIGS if (path := folder / name).is_file()]
    shape = hashlib.sha256(b"\0".join([*configs, repr(files).encode()])).hexdigest()[:16]
    packages = f"torch {torch.__version__}, transformers {version('transformers')}"
    kernels = "compiled" if find_kernels() else "no"
    offered = " ".join([f"{option.dtype}/{option.threads}" for option in options] + [quantization])
    return (
        f"{processor_name()}, {os.cpu_count()} cores, {packages}, {kernels} kernels, model {shape}: {offered}"
    )
