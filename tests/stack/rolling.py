"""A rolling update as the guide describes it, behind HAProxy, while clients ask: how many requests fail."""

import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import httpx

from tests.stack.client import Client, text_of
from tests.stack.compose import Checkout
from tests.stack.podman import Podman, StackFailed

DETECTIONS_A_SECOND = 20
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
  option redispatch
  option httpchk GET /readyz
  default-server inter 1s fall 2 rise 1
"""


class Balancer:
    """HAProxy on loopback before the containers of each service; `use` names them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, addresses: dict[str, list[str]]) -> None:
        """Starts it before these addresses, with one more free place for each service."""
        text = _CONFIGURATION.format(socket=self._folder / "haproxy.sock")
        for name, port in PORTS.items():
            text += f"listen {name}\n  bind 127.0.0.1:{port}\n"
            for number, address in enumerate([*addresses[name], None]):
                at = f"{address or '127.0.0.1'}:{BEHIND[name]} check{'' if address else ' disabled'}"
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)


class Load:
    """Detections at a steady rate and two completions at a time, without any repeating."""

    def __init__(self, client: Client, known: str) -> None:
        self._client, self._known = client, known
        self._stop = threading.Event()
        self.answered: dict[str, int] = {"gen": 0, "detect": 0}
        self.failed: list[str] = []
        self._pool = ThreadPoolExecutor(64)
        self._threads = [threading.Thread(target=self._detect)]
        self._threads += [threading.Thread(target=self._complete) for _ in range(2)]

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
        try:
            ask()
            self.answered[name] += 1
        except (httpx.HTTPError, StackFailed, KeyError) as error:
            self.failed.append(f"{name}: {error}")

    def _detect(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self._pool.submit(self._ask, "detect", lambda: self._client.verdict(self._known))
            due += 1 / DETECTIONS_A_SECOND
            self._stop.wait(max(0, due - time.monotonic()))

    def _complete(self) -> None:
        while not self._stop.is_set():
            self._ask("gen", lambda: text_of(self._client.complete(24)))


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
    """The guide's steps 2 and 3: the new one gets ready, the old one is taken out, drains and ends.

    Args:
        place: of the old one in the balancer.
        free: place that the new one gets.
    """
    podman("start", new)
    host = address(podman, new)
    wait_ready(host, BEHIND[name])
    balancer.tell(
        f"set server {name}/s{free} addr {host} port {BEHIND[name]}",
        f"enable health {name}/s{free}",
        f"set server {name}/s{free} state ready",
    )
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
    """Replaces both replicas of both services one after the other, detection first; what clients saw.

    Raises:
        StackFailed: a request failed.
    """
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
    with Balancer(podman.folder) as balancer:
        balancer.start({name: [address(podman, one) for one in these[:2]] for name, these in names.items()})
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
    return f"{load.answered['detect']} detections and {load.answered['gen']} completions, failed 0"
