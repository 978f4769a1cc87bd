"""What systemd's timers do for Podman elsewhere: each container's health check, again and again."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from tests.stack.podman import Podman

_SECONDS = 5.0


class HealthChecks:
    """Runs the health checks of all containers while the block lasts."""

    def __init__(self, podman: Podman) -> None:
        self._podman = podman
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)

    def _run(self) -> None:
        running: dict[str, Future[str]] = {}
        with ThreadPoolExecutor(4) as pool:
            while not self._ended.wait(_SECONDS):
                for name in self._podman("ps", "--format", "{{.Names}}", check=False).split():
                    if name not in running or running[name].done():
                        running[name] = pool.submit(self._podman, "healthcheck", "run", name, check=False)
