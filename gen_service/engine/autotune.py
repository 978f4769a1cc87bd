"""What passes cost, measured at start on the model itself.

The choice of number format and CPU threads follows from it and is kept in a file: the next start on this
machine measures nothing.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import orjson
import structlog
import torch

from ttmark.gen_service.engine.runner import Runner
from ttmark.shared.processor import processor_name
from ttmark.shared.whole_file import AS_UMASK_SAYS, make_folder, write_whole

_REPEATS = 3
_COMPARED_ROWS = (4, 64)  # of a pass in ordinary decoding, and of one with probes


def seconds_of(run: Callable[[int], object], rows: int) -> float:
    """The fastest of three times that `run(rows)` takes."""
    times = [time.perf_counter()]
    for _ in range(_REPEATS):
        run(rows)
        times.append(time.perf_counter())
    return min(after - before for before, after in pairwise(times))


def fastest(runners: Iterable[Runner], threads: Iterable[int]) -> Runner:
    """The runner that is fastest with any of the numbers of threads; torch is left at that number.

    What counts is the fastest of three passes of each measured size.
    """
    choices = list(product(runners, threads))
    runner, count = choices[0] if len(choices) == 1 else min(choices, key=lambda choice: _seconds(*choice))
    torch.set_num_threads(count)
    return runner


def _seconds(runner: Runner, threads: int) -> float:
    torch.set_num_threads(threads)
    return sum(seconds_of(runner.probe_once, rows) for rows in _COMPARED_ROWS)


@dataclass(frozen=True, slots=True)
class Choice:
    """How a model runs fastest: number format, and CPU threads of torch."""

    dtype: str
    threads: int


@dataclass(frozen=True, slots=True)
class ChoiceFile:
    """Choices by what they depend on.

    Attributes:
        path: of a JSON file, which may be deleted at any time; None: nothing is kept.
    """

    path: Path | None

    def find(self, key: str, options: Iterable[Choice]) -> Choice | None:
        """The choice that was kept, if it is still an option. A file that cannot be read holds none."""
        kept = self._read().get(key)
        return next((option for option in options if asdict(option) == kept), None)

    def keep(self, key: str, choice: Choice) -> None:
        """Adds a choice. Where nothing can be written, the next start measures again."""
        if self.path is None:
            return
        kept = self._read() | {key: asdict(choice)}
        try:
            make_folder(self.path.parent)
            write_whole(self.path, orjson.dumps(kept, option=orjson.OPT_INDENT_2), mode=AS_UMASK_SAYS)
        except OSError as error:
            log = structlog.get_logger("ttmark.engine")
            log.info("choice_not_kept", path=str(self.path), error=error.strerror)

    def _read(self) -> dict[str, Any]:
        try:
            kept = orjson.loads(self.path.read_bytes()) if self.path else {}
        except (OSError, orjson.JSONDecodeError):
            return {}
        return kept if isinstance(kept, dict) else {}


def choice_key(config: bytes, options: Iterable[Choice]) -> str:
    """What a choice depends on: processor, cores, torch, the model's shape, and what there is to choose from.

    Args:
        config: the model's config.json.
    """
    shape = hashlib.sha256(config).hexdigest()[:16]
    offered = " ".join(f"{option.dtype}/{option.threads}" for option in options)
    return f"{processor_name()}, {os.cpu_count()} cores, torch {torch.__version__}, model {shape}: {offered}"
