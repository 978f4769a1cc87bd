"""Generation services as forks of a process that has imported everything: real processes, started quickly."""

import multiprocessing
import os
import time
from collections.abc import Mapping
from pathlib import Path

from tests.harness.observe.services import answers, free_port, variables
from ttmark.services.local.provision import LocalSetup

STOP_SECONDS = 60.0
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "ttmark.services.composition.generation_service",
        "ttmark.services.cli.serve",
        "tests.harness.observe.forked_services",
    ]
)


class ForkedService:
    """One `ttmark serve gen` with further TTMARK_* settings on a free port, ready a little later."""

    start_seconds = 120.0

    def __init__(self, setup: LocalSetup, log: Path, settings: Mapping[str, str] | None = None) -> None:
        self.log = log
        self.port = free_port()
        environment = {
            **variables(setup),
            "TTMARK_GEN_PORT": str(self.port),
            "TTMARK_THREADS": "1",
            "TTMARK_DTYPE": "float32",
            **(settings or {}),
        }
        self._process = _FORKS.Process(target=_serve, args=(environment, log))
        self._process.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + self.start_seconds
        while not answers(f"{self.url}/readyz"):
            if not self._process.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(self.log.read_text()[-4000:])
            time.sleep(0.1)

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self) -> int | None:
        """The exit code; None when the process had to be killed."""
        self._process.join(STOP_SECONDS)
        code = self._process.exitcode
        if code is None:
            self._process.kill()
            self._process.join()
        return code


def _serve(environment: Mapping[str, str], log: Path) -> None:
    from ttmark.services.cli.serve import gen

    sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.environ.update(environment)
    gen()
