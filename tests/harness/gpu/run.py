"""One part: run once, with a limit on its time, and kept; the card, and the memory that a part takes."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from tests.harness.gpu.parts import Part, arguments


def _ask(what: str) -> list[str]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout.strip().splitlines() if run.returncode == 0 else []


def card_name() -> str | None:
    """Of the first card, in letters for a folder; None: there is none."""
    names = _ask("name")
    return re.sub(r"[^a-z0-9]+", "-", names[0].lower()).strip("-") if names else None


class MemoryWatch:
    """Looks at the first card's memory each half second until the block is left."""

    def __init__(self, seconds: float = 0.5) -> None:
        self.most_mib: int | None = None
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            used = _ask("memory.used")
            if not used:
                return
            self.most_mib = max(self.most_mib or 0, int(used[0]))
            if self._ended.wait(self._seconds):
                return


SECONDS = 600.0


@dataclass(frozen=True)
class Result:
    """What became of a part.

    Attributes:
        status: `ok`, `failed`, `too long`, or `left out`.
        seconds: on the clock.
        memory_mib: most of the card's memory that was seen in use; None: there is no card.
        command: what was run.
    """

    status: str
    seconds: float
    memory_mib: int | None
    command: list[str]


def kept(folder: Path, part: Part) -> Result | None:
    """The result of a part that has gone well before."""
    path = folder / f"{part.name}.result.json"
    if not path.exists():
        return None
    result = Result(**json.loads(path.read_text()))
    return result if result.status == "ok" else None


def run_part(part: Part, python: Path, folder: Path, *, on_gpu: bool, limit: float = SECONDS) -> Result:
    """Runs it, writes its output and its result, and ends its processes after `limit` seconds."""
    command = [str(python), *arguments(part, on_gpu, folder / f"{part.name}.json")]
    if not python.exists():
        return _keep(Result("left out", 0.0, None, command), folder, part)
    start = time.monotonic()
    with MemoryWatch() as memory, (folder / f"{part.name}.log").open("wb") as log:
        environment = os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            status = "failed" if process.wait(limit) else "ok"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = "too long"
    return _keep(Result(status, time.monotonic() - start, memory.most_mib, command), folder, part)


def _keep(result: Result, folder: Path, part: Part) -> Result:
    (folder / f"{part.name}.result.json").write_text(json.dumps(asdict(result), indent=2) + "\n")
    return result
