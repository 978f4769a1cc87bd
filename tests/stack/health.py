"""What systemd's timers do for Podman elsewhere: each container's health check, again and again."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from tests.stack.podman import Podman


class HealthChecks:
    """Runs the health checks of all containers while the block lasts."""

    def __init__(self, podman: Podman) -> None:
        self._podman = podman
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(60)

    def _run(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            while not self._ended.wait(2):
                for name in self._podman("ps", "--format", "{{.Names}}", check=False).split():
                    pool.submit(self._podman, "healthcheck", "run", name, check=False)
