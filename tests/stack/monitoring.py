"""What the real Prometheus of the stack has scraped, loaded and fired."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from tests.stack.podman import Podman, StackFailed

T = TypeVar("T")

URL = "http://127.0.0.1:9090"
JOBS = {"ttmark-gen", "ttmark-detect", "ttmark-canary"}


def scraped() -> dict[str, int]:
    """Targets that are up, by job; waits until each job has one."""

    def up() -> dict[str, int] | None:
        counted: dict[str, int] = {}
        for result in _query('up{job=~"ttmark-.+"} == 1'):
            name = result["metric"]["job"]
            counted[name] = counted.get(name, 0) + 1
        return counted if counted.keys() == JOBS else None

    return _wait(up, "targets that are up")


def live_check_passes() -> None:
    """Waits for a run of the live check in which all was well.

    Raises:
        StackFailed: there is none.
    """
    _wait(lambda: _query('ttmark_canary_runs_total{outcome="ok"} > 0') or None, "a live check that passes")


def rules() -> int:
    """How many alert rules were loaded."""
    groups = httpx.get(f"{URL}/api/v1/rules", params={"type": "alert"}).json()["data"]["groups"]
    return sum(len(group["rules"]) for group in groups)


def fires(podman: Podman, container: str, alert: str = "TTMarkServiceDown") -> float:
    """Seconds until an alert fires after a container was paused; it goes on then."""
    started = time.monotonic()
    podman("pause", container)
    try:
        _wait(lambda: _query(f'ALERTS{{alertname="{alert}", alertstate="firing"}}') or None, alert)
    finally:
        podman("unpause", container)
    return time.monotonic() - started


def _query(expression: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{URL}/api/v1/query", params={"query": expression}).json()
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


def _wait(ask: Callable[[], T | None], what: str, seconds: float = 200) -> T:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            found = ask()
        except (httpx.HTTPError, KeyError):
            found = None
        if found is not None:
            return found
        time.sleep(1)
    raise StackFailed(f"{what}: not after {seconds:.0f} s")
