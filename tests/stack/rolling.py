"""A rolling update as the guide describes it, behind HAProxy, while clients ask: how many requests fail."""

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import httpx

from tests.stack.client import Client, text_of
from tests.stack.compose import Checkout
from tests.stack.podman import Podman, StackFailed

DETECTIONS_A_SECOND = 20
# Detections that are waited for at the same time: one that is due while so many are under way is not sent, as
# a machine that does fewer in a second would have ever more of them waiting.
MOST_AT_ONCE = 16
PORTS = {"gen": 18000, "detect": 18001}
BEHIND = {"gen": 8000, "detect": 8001}
_CONFIGURATION = """\
global
  stats socket {socket} level admin
defaults
  mode http
  timeout connect 5s
  timeout client 120s
  timeout server 120s
  timeout check 5s
  option redispatch
  option httpchk GET /readyz
  default-server inter 1s fall 2 rise 1
"""


class Balancer:
    """HAProxy on loopback, on a port for each service, before its instances."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        self._folder = folder
        self._ports = ports
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, addresses: dict[str, list[str]]) -> None:
        """Starts it before these hosts and ports, with one more free place for each service."""
        text = _CONFIGURATION.format(socket=self._folder / "haproxy.sock")
        for name, port in self._ports.items():
            text += f"listen {name}\n  bind 127.0.0.1:{port}\n"
            for number, address in enumerate([*addresses[name], None]):
                at = f"{address or '127.0.0.1:1'} check{'' if address else ' disabled'}"
                text += f"  server s{number} {at}\n"
        configuration = self._folder / "haproxy.cfg"
        configuration.write_text(text)
        self._process = subprocess.Popen(["haproxy", "-db", "-q", "-f", configuration])

    def tell(self, *orders: str) -> None:
        """Orders of HAProxy's runtime interface."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._folder / "haproxy.sock"))
            connection.sendall(f"{';'.join(orders)}\n".encode())
            connection.recv(4096)

    def add(self, name: str, place: int, host: str, port: int) -> None:
        """Puts an instance that is ready into a free place."""
        server = f"{name}/s{place}"
        self.tell(
            f"set server {server} addr {host} port {port}",
            f"enable health {server}",
            f"set server {server} state ready",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)


class Load:
    """Detections at a steady rate, and beside them a completion and a stream at a time; nothing is repeated.

    `unsent`: detections that were due while MOST_AT_ONCE were under way.
    """

    def __init__(self, client: Client, known: str) -> None:
        self._client, self._known = client, known
        self._stop = threading.Event()
        self._began = time.monotonic()
        self.answered: dict[str, int] = {"gen": 0, "detect": 0}
        self.failed: list[str] = []
        self.unsent = 0
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE)
        self._free = threading.Semaphore(MOST_AT_ONCE)
        self._threads = [threading.Thread(target=self._detect)]
        for ask in (lambda: text_of(client.complete(24)), lambda: client.stream(200)):
            self._threads.append(threading.Thread(target=self._repeat, args=(ask,)))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)
        self._pool.shutdown()

    def _ask(self, name: str, ask: Callable[[], object]) -> None:
        began = time.monotonic()
        try:
            ask()
            self.answered[name] += 1
        except (httpx.HTTPError, StackFailed, KeyError) as error:
            now = time.monotonic()
            self.failed.append(f"{name} at {now - self._began:.0f} s after {now - began:.1f} s: {error!r}")

    def _detect(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            if self._free.acquire(blocking=False):
                asked = self._pool.submit(self._ask, "detect", lambda: self._client.verdict(self._known))
                asked.add_done_callback(lambda _: self._free.release())
            else:
                self.unsent += 1
            due += 1 / DETECTIONS_A_SECOND
            self._stop.wait(max(0, due - time.monotonic()))

    def _repeat(self, ask: Callable[[], object]) -> None:
        while not self._stop.is_set():
            self._ask("gen", ask)


def address(podman: Podman, container: str) -> str:
    """Of a container in the network that clients reach."""
    form = '{{(index .NetworkSettings.Networks "ttmark_front").IPAddress}}'
    return podman("inspect", container, "--format", form).strip()


def wait_ready(host: str, port: int, seconds: float = 180) -> None:
    """Until a service takes requests."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if httpx.get(f"http://{host}:{port}/readyz", timeout=5).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise StackFailed(f"{host}:{port} is not ready after {seconds:.0f} s")


def replace(podman: Podman, balancer: Balancer, name: str, old: str, new: str, place: int, free: int) -> None:
    """The guide's steps 2 and 3: the new one gets ready in a free place, the old one drains and ends."""
    podman("start", new)
    host = address(podman, new)
    wait_ready(host, BEHIND[name])
    balancer.add(name, free, host, BEHIND[name])
    time.sleep(3)
    balancer.tell(f"set server {name}/s{place} state drain")
    time.sleep(10)
    podman("stop", "--time", "45", old)
    balancer.tell(f"set server {name}/s{place} state maint")


SCALED = """\
services:
  gen: {ports: !override []}
"""


def roll(podman: Podman, checkout: Checkout, client: Client, known: str) -> str:
    """Replaces both replicas of both services one after the other, detection first; what clients saw."""
    (checkout.folder / "scaled.yml").write_text(SCALED)
    files = "-f docker-compose.yml -f docker-compose.override.yml -f scaled.yml"
    checkout.type(
        f"docker compose {files} --profile cpu up -d --no-recreate --scale gen=3 --scale detect=3 gen detect"
    )
    names = {name: [f"ttmark-{name}-{number}" for number in (1, 2, 3)] for name in ("detect", "gen")}
    for name, containers in names.items():
        for container in containers:
            wait_ready(address(podman, container), BEHIND[name])
        podman("stop", "--time", "45", containers[2])
    behind = Client("http://127.0.0.1:18000", lambda: "http://127.0.0.1:18001", client.token, client.model)
    with Balancer(podman.folder, PORTS) as balancer:
        balancer.start(
            {
                name: [f"{address(podman, one)}:{BEHIND[name]}" for one in these[:2]]
                for name, these in names.items()
            }
        )
        for port in PORTS.values():
            wait_ready("127.0.0.1", port)
        with Load(behind, known) as load:
            time.sleep(5)
            for name, (first, second, third) in names.items():
                replace(podman, balancer, name, first, third, place=0, free=2)
                replace(podman, balancer, name, second, first, place=1, free=0)
            time.sleep(5)
    if load.failed:
        raise StackFailed(f"a rolling update failed {len(load.failed)} requests: {load.failed[:5]}")
    return (
        f"{load.answered['detect']} detections and {load.answered['gen']} completions, failed 0;"
        f" {load.unsent} detections were due while {MOST_AT_ONCE} were under way, and not sent"
    )
