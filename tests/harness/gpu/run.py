"""One part: run once, with a limit on its time, and kept."""

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.harness.gpu.card import MemoryWatch
from tests.harness.gpu.parts import Part, arguments

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
