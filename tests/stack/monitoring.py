"""What the real Prometheus of the stack has scraped, loaded and fired."""

import json
import time
from collections.abc import Callable
from typing import Any, Self, TypeVar

import httpx

from tests.stack.base_images import PYTHON_NAMES
from tests.stack.podman import Podman, StackFailed

T = TypeVar("T")

URL = "http://127.0.0.1:9090"
JOBS = {"ttmark-gen", "ttmark-detect", "ttmark-canary"}

_CONTACT = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Contact(BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.send_response(200)
        self.end_headers()
HTTPServer(("", 80), Contact).serve_forever()
"""


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
    """Waits for a run of the live check in which all was well."""
    _wait(lambda: _query('ttmark_canary_runs_total{outcome="ok"} > 0') or None, "a live check that passes")


def rules() -> int:
    """How many alert rules were loaded."""
    groups = httpx.get(f"{URL}/api/v1/rules", params={"type": "alert"}).json()["data"]["groups"]
    return sum(len(group["rules"]) for group in groups)


class ContactPoint:
    """A server at the example's address in `alertmanager.yml`; prints the alerts that it is told."""

    def __init__(self, podman: Podman) -> None:
        self._podman = podman

    def __enter__(self) -> Self:
        where = ("--network", "ttmark_front", "--network-alias", "alerts.example.org")
        self._podman(
            "run", "--detach", "--name", "contact", *where, PYTHON_NAMES[0], "python", "-c", _CONTACT
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._podman("rm", "--force", "--time", "0", "contact", check=False)

    def told(self) -> str:
        """All that it was told so far, as JSON, a line each time."""
        return self._podman("logs", "contact")


def fires(
    podman: Podman, contact: ContactPoint, container: str, alert: str = "TTMarkServiceDown"
) -> tuple[float, float]:
    """Seconds until an alert fires after a container was paused, and until the contact is told."""
    started = time.monotonic()
    podman("pause", container)
    try:
        _wait(lambda: _query(f'ALERTS{{alertname="{alert}", alertstate="firing"}}') or None, alert)
        fired = time.monotonic() - started
        told = _wait(lambda: contact.told().splitlines() or None, f"word of {alert}")
        runbook = httpx.get(json.loads(told[0])["alerts"][0]["annotations"]["runbook_url"])
        if alert not in told[0] or alert not in runbook.text:
            raise StackFailed(f"the contact was told {told[0]}, whose runbook has {runbook.text[:200]}")
    finally:
        podman("unpause", container)
    return fired, time.monotonic() - started


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
