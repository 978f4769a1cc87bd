"""The process of a service, from outside."""

import json
import re
import subprocess
import sys

import httpx

from tests.harness.served_and_stopped import serve_and_stop
from ttmark.services.composition.server import server_config
from ttmark.shared.http.connections import ConnectionLimits, bounded_protocol

CYCLE = """
class Cycle:
    def __init__(self): self.own = self
    def __del__(self): print("freed")
cycle = Cycle()
"""


def test_what_was_made_before_the_start_is_freed_at_the_end() -> None:
    """Libraries complain on standard error of what is still there when the interpreter has ended."""
    process = serve_and_stop(CYCLE)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "freed\n"


def test_the_log_says_what_memory_a_service_holds_once_it_serves() -> None:
    logging = "from ttmark.shared.observability.logging import configure_logging; configure_logging()"
    said = [json.loads(line)["event"] for line in serve_and_stop(logging).stderr.splitlines()]
    (line,) = (event for event in said if event.startswith("memory: "))
    assert re.fullmatch(r"memory: resident \d+ MiB, peak \d+ MiB", line), line
    assert said.index(line) < said.index("Shutting down")


SERVED = """
import socket
from ttmark.services.composition.server import serve
from ttmark.services.settings.base import ServiceSettings
from ttmark.shared.http.app import AppOptions, create_app
from ttmark.shared.http.health import Readiness

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
options = AppOptions(authenticate=None)
app = create_app(options, title="t", error_style="problem", readiness=lambda: Readiness({"keys": True}))
serve(app, listener, ServiceSettings(drain_delay_seconds=2, drain_seconds=1))
"""


def test_a_service_that_is_to_end_says_so_while_it_takes_requests_on_for_the_delay() -> None:
    process = subprocess.Popen([sys.executable, "-c", SERVED], stdout=subprocess.PIPE, text=True)
    with process, httpx.Client(base_url=f"http://127.0.0.1:{process.stdout.readline().strip()}") as client:
        try:
            before = client.get("/readyz", timeout=60)
            process.terminate()
            while (after := client.get("/readyz")).status_code == 200:
                pass
            new_connection = client.get("/healthz")
        except BaseException:
            process.kill()
            raise
    assert before.json()["checks"] == {"keys": True}
    assert "connection" not in before.headers
    assert after.json()["checks"] == {"keys": True, "staying": False}
    assert after.headers["connection"] == new_connection.headers["connection"] == "close"
    assert new_connection.status_code == 200
    assert process.returncode == 0


async def nothing(*_: object) -> None:
    """An application that answers nothing."""


def test_an_idle_connection_outlives_the_patience_of_a_proxy() -> None:
    """HAProxy keeps one for 5 seconds, as uvicorn does by itself: whatever came just then was lost."""
    config = server_config(nothing, bounded_protocol(ConnectionLimits()), (), 1)
    assert config.timeout_keep_alive > 7
