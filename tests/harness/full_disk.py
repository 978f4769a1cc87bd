"""Runs steps, in forks under `full_disk.c`, on a disk that fills up or until they are killed."""

import ctypes
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer

SOURCE = Path(__file__).with_suffix(".c")
COMPILER = shutil.which("cc")


@dataclass(frozen=True)
class Outcome:
    """How a step ended (-9: killed), what it printed, and its operations on files below the folder."""

    code: int
    said: str
    operations: int

    @property
    def last_line(self) -> str:
        return self.said.strip().rpartition("\n")[2]


def preloaded(scratch: Path, under: Path, flag: Path | None = None) -> dict[str, str]:
    """Variables that fill the disk of a folder: from `full_disk_at` on, or while a flag is there."""
    library = scratch / "full_disk.so"
    if not library.exists():
        command = [str(COMPILER), "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
    variables = {"LD_PRELOAD": str(library), "FULL_DISK_UNDER": f"{under}/"}
    return variables | ({"FULL_DISK_WHILE": str(flag)} if flag else {})


class FullDisk:
    """Runs functions of a module, which take text, in a folder."""

    def __init__(self, server: "subprocess.Popen[str]", output: Path) -> None:
        self._server = server
        self._output = output

    def run(self, step: str, *arguments: str, folder: Path, at: int = 0, kill: bool = False) -> Outcome:
        """One step; `at`: the operation at which the disk is full, or the process killed. 0: none."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        asked = [step, arguments, str(folder), at, kill, str(self._output)]
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        code, operations = json.loads(self._server.stdout.readline())
        return Outcome(code, self._output.read_text(errors="replace"), operations)


@contextmanager
def full_disk(module: str, under: Path, scratch: Path, **variables: str) -> Iterator[FullDisk]:
    """A server for the functions of a module; folders that it is given lie under `under`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, module],
        env=environment | preloaded(scratch, under) | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield FullDisk(server, scratch / "said")
    finally:
        server.communicate()


def _serve(module: str) -> None:
    steps = importlib.import_module(module)
    for line in sys.stdin:
        step, arguments, folder, at, kill, output = json.loads(line)
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            work = partial(getattr(steps, step), *arguments)
            _step(work, Path(folder), at, kill, Path(output), writing)
        os.close(writing)
        with os.fdopen(reading) as report:
            operations = int(report.read() or 0)
        _, status = os.waitpid(process, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), operations]), flush=True)


def _step(step: Callable[[], None], folder: Path, at: int, kill: bool, output: Path, report: int) -> None:
    disk = ctypes.CDLL(None)
    file = os.open(output, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    for number in (1, 2):
        os.dup2(file, number)
    os.chdir(folder)
    disk.full_disk_at(ctypes.c_long(at), int(kill))
    code = 0
    try:
        step()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except typer.Exit as end:
        code = end.exit_code
    except BaseException:
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    os.write(report, str(disk.full_disk_operations()).encode())
    os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(sys.argv[1])
