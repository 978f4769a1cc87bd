"""Runs `ttmark up` as a user does: a process of its own, free ports, a fresh state folder."""

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.observe.services import free_port

START_SECONDS = 240.0
NO_INDEX = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": ""}


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Up:
    process: subprocess.Popen[str]
    folder: Path
    state: Path
    gen_port: int
    detect_port: int
    output: Path

    def text(self) -> str:
        return self.output.read_text()

    def wait_for(self, words: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while words not in self.text():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.1)

    def commands(self) -> dict[str, str]:
        """What is printed for a newcomer to type, under the headings that are printed."""
        blocks = re.findall(r"^(\S.*)\n((?:  .*\n)+)", self.text(), re.M)
        return {title: textwrap.dedent(commands) for title, commands in blocks}

    def type(self, command: str, *program: str) -> str:
        """Runs what was typed in the folder of `ttmark up`, and gives back what it writes."""
        result = subprocess.run(
            [*(program or ("bash", "-c")), command],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def end(self, number: signal.Signals) -> int:
        """Ends it by a signal, and waits until both services have ended in good order."""
        self.process.send_signal(number)
        code, deadline = self.process.wait(60), time.monotonic() + 30
        for name, port in (("gen", self.gen_port), ("detect", self.detect_port)):
            log = self.state / f"{name}.log"
            while is_taken(port) or "Finished server process" not in log.read_text():
                assert time.monotonic() < deadline
                time.sleep(0.1)
        return code

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


class UpRunner:
    """Starts `ttmark up` as typed in a folder of its own, unless said with demo and no measurement."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Up] = []

    @property
    def state(self) -> Path:
        return self._folder / ".ttmark"

    def __call__(
        self, *arguments: str, gen_port: int | None = None, model: str | None = "demo", **variables: str
    ) -> Up:
        gen_port, detect_port = gen_port or free_port(), free_port()
        output = self._folder / f"output-{len(self._started)}.txt"
        with output.open("w") as sink:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "ttmark.services", "up"),
                    *(["--model", model] if model else []),
                    *("--gen-port", str(gen_port), "--detect-port", str(detect_port)),
                    *arguments,
                ],
                stdout=sink,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self._folder,
                env=os.environ | {"COLUMNS": "200", "TTMARK_DTYPE": "float32"} | variables,
            )
        self._started.append(Up(process, self._folder, self.state, gen_port, detect_port, output))
        return self._started[-1]

    def stop_all(self) -> None:
        for up in self._started:
            if up.process.poll() is None:
                up.interrupt()


@pytest.fixture
def run_up(tmp_path: Path) -> Iterator[UpRunner]:
    # In the background of a shell SIGINT is ignored, and would be by what is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runner = UpRunner(tmp_path)
    yield runner
    runner.stop_all()
