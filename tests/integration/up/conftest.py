"""Runs `ttmark up` as a user does: a process of its own, free ports, a fresh state folder."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

START_SECONDS = 240.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Up:
    """A running or finished `ttmark up`."""

    process: subprocess.Popen[str]
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

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


class UpRunner:
    """Starts `ttmark up` with arguments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Up] = []

    def __call__(self, *arguments: str, gen_port: int | None = None) -> Up:
        gen_port, detect_port = gen_port or free_port(), free_port()
        state = self._folder / "state"
        output = self._folder / f"output-{len(self._started)}.txt"
        with output.open("w") as sink:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "services", "up", "--state", str(state)),
                    *("--gen-port", str(gen_port), "--detect-port", str(detect_port)),
                    *arguments,
                ],
                stdout=sink,
                stderr=subprocess.STDOUT,
                text=True,
                env=os.environ | {"COLUMNS": "200"},
            )
        self._started.append(Up(process, state, gen_port, detect_port, output))
        return self._started[-1]

    def finish(self, *arguments: str, gen_port: int | None = None) -> Up:
        up = self(*arguments, gen_port=gen_port)
        up.process.wait(START_SECONDS)
        return up

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
