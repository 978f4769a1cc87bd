"""What the worst bodies cost a detection service: CPU time, memory, and what others notice.

The service is one process, with the memory that the manifests give it. Small requests of another tenant and
`/healthz` are asked meanwhile, each by a process of its own.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.harness.job_tenants import provision
from tests.harness.worst_bodies import WORST_BODIES
from tests.integration.detect.neighbours import cpu, p99
from tests.integration.detect.served import serving

MEMORY = 2 * 2**30  # deploy/kubernetes/base/detection.yaml
# Asks until its standard input ends; in a process of its own, which nothing here can hold up.
PROBE = """
import http.client, json, sys, threading, time
port, method, path, token = sys.argv[1:]
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
connection, times = http.client.HTTPConnection("127.0.0.1", int(port), timeout=120), []
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
words = "a river that runs through the old town and under its bridges before it comes to the sea ".split()
while not stop.is_set():
    text = " ".join(words[(i * 7 + len(times) * 3) % len(words)] + str(len(times)) for i in range(60))
    body = json.dumps({"inputs": [{"text": text}]}) if method == "POST" else None
    begun = time.perf_counter()
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, answer.status
    times.append(time.perf_counter() - begun)
    stop.wait(0.02)
print(json.dumps(times))
"""


@dataclass(frozen=True)
class Cost:
    """Of one body: what the service used for it, per body, and what others noticed, in milliseconds.

    `crowding`: the time that its threads wanted a core, over that in which they had one.
    """

    body: str
    status: int
    detail: str
    cpu_seconds: float
    grown_mib: float
    health_p99: float
    neighbour_p99: float
    crowding: float


@dataclass(frozen=True)
class Measured:
    """A service with little memory."""

    port: int
    tokens: dict[str, str]
    process: psutil.Process

    def post(
        self, body: bytes, path: str = "/v1/detect", tenant: str = "dear", **more: str
    ) -> httpx.Response:
        token = f"Bearer {self.tokens[tenant]}"
        headers = {"Authorization": token, "Content-Type": "application/json", **more}
        return httpx.post(f"http://127.0.0.1:{self.port}{path}", content=body, headers=headers, timeout=280)

    @contextmanager
    def probing(self, method: str, path: str) -> Iterator[list[float]]:
        """Milliseconds of requests that are sent meanwhile, once it has ended."""
        command = [sys.executable, "-c", PROBE, str(self.port), method, path]
        command.append(self.tokens["small"])
        probe = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        times: list[float] = []
        try:
            yield times
        finally:
            times += [1000 * one for one in json.loads(probe.communicate("")[0])]

    def peak(self) -> int:
        """The most memory that was resident since `forget_peak`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])

    def cores(self) -> dict[int, tuple[int, int]]:
        """Nanoseconds that each thread had a core and waited for one (Linux's `schedstat`)."""
        read = {}
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            with suppress(OSError):  # it has ended
                had, waited, _ = (thread / "schedstat").read_text(encoding="utf-8").split()
                read[int(thread.name)] = (int(had), int(waited))
        return read

    def forget_peak(self) -> None:
        """Begins anew."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5", encoding="utf-8")


@contextmanager
def measured_service(folder: Path, changed: str = "", **settings: str) -> Iterator[Measured]:
    """A service that is warm and cannot have more than `MEMORY`."""
    tokens = asyncio.run(provision(folder))
    with serving(folder, settings, ("prlimit", f"--data={MEMORY}"), changed) as (port, process):
        service = Measured(port, tokens, psutil.Process(process.pid))
        with service.probing("POST", "/v1/detect"):
            time.sleep(2)
        yield service


def crowding(before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]) -> float:
    """How many times longer work took since `before` than it had taken with the cores for itself."""
    had, waited = (
        sum(now[i] - before.get(thread, (0, 0))[i] for thread, now in after.items()) for i in (0, 1)
    )
    return round((had + waited) / max(had, 1), 2)


def cost(
    service: Measured, name: str, size: int, send: Callable[[bytes], httpx.Response], *, times: int
) -> Cost:
    """Sends a body a few times and looks at the service meanwhile."""
    body = WORST_BODIES[name](size)
    with service.probing("GET", "/healthz") as health, service.probing("POST", "/v1/detect") as neighbour:
        time.sleep(1)
        service.forget_peak()
        cores = service.cores()
        memory, before, began = service.process.memory_info().rss, cpu(service.process), time.perf_counter()
        for _ in range(times):
            answer = send(body)
        spent, seconds, peak = cpu(service.process) - before, time.perf_counter() - began, service.peak()
        crowded = crowding(cores, service.cores())
        # What the probes cost meanwhile is not the body's.
        before, began = cpu(service.process), time.perf_counter()
        time.sleep(2)
        beside = (cpu(service.process) - before) / (time.perf_counter() - began)
    detail = answer.json().get("detail", "")
    return Cost(
        name,
        answer.status_code,
        detail,
        round((spent - beside * seconds) / times, 2),
        round((peak - memory) / 2**20, 1),
        p99(health),
        p99(neighbour),
        crowded,
    )
