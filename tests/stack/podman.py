"""Podman with a storage, networks and a socket of its own, all in one folder that can be removed."""

import os
import shutil
import socket
import subprocess
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

import yaml

NEEDED = ("podman", "catatonit", "runc", "mmdebstrap", "netavark", "iptables", "haproxy")
"""Commands of Debian's packages of the same names; netavark and iptables lie outside the PATH."""

_CONTAINERS = """\
[containers]
{more}default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{folder}/storage"
runroot = "{folder}/run"
"""


class StackFailed(Exception):
    """A step did not do what it is there for; the message is for people."""


def missing() -> list[str]:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/lib/podman"])
    return [name for name in NEEDED if shutil.which(name, path=path) is None]


def taken(compose: Path) -> list[str]:
    """Ports of loopback that its services publish, and somebody uses; Grafana's is left out, as it is."""
    services = yaml.safe_load(compose.read_text())["services"]
    ranges = [port for name, one in services.items() if name != "grafana" for port in one.get("ports", ())]
    found = []
    for published in ranges:
        first, _, last = published.split(":")[1].partition("-")
        for port in range(int(first), int(last or first) + 1):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0 and str(port) not in found:
                    found.append(str(port))
    return found


class Podman:
    """Runs `podman` on the storage in `folder`; in a `with` block also its socket, for Compose."""

    def __init__(self, folder: Path, seccomp: Path) -> None:
        self.folder = folder
        self.socket = folder / "podman.sock"
        for name in ("storage", "run", "networks"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "containers.conf").write_text(_CONTAINERS.format(folder=folder, more=""))
        profile = f'seccomp_profile = "{seccomp}"\n'
        (folder / "service.conf").write_text(_CONTAINERS.format(folder=folder, more=profile))
        (folder / "storage.conf").write_text(_STORAGE.format(folder=folder))
        self.environment = {
            **os.environ,
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "DOCKER_HOST": f"unix://{self.socket}",
        }
        self._service: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.socket.unlink(missing_ok=True)
        with (self.folder / "service.log").open("wb") as log:
            command = ["podman", "system", "service", "--time=0", f"unix://{self.socket}"]
            environment = self.environment | {"CONTAINERS_CONF": str(self.folder / "service.conf")}
            self._service = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        for _ in range(100):
            if self.socket.exists():
                return self
            time.sleep(0.1)
        raise StackFailed("podman system service did not start: " + (self.folder / "service.log").read_text())

    def __exit__(self, *_: object) -> None:
        if self._service is not None:
            self._service.terminate()
            self._service.wait(30)

    def __call__(
        self, *arguments: str | Path, check: bool = True, timeout: float = 900, text: str | None = None
    ) -> str:
        """What `podman ARGUMENTS` prints; `check`: a failure is raised."""
        command = ["podman", *map(str, arguments)]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=timeout, input=text
        )
        if check and done.returncode:
            raise StackFailed(f"{' '.join(command[:6])} ...: {(done.stderr or done.stdout)[-2000:]}")
        return done.stdout

    def has_image(self, name: str) -> bool:
        command = ["podman", "image", "exists", name]
        return subprocess.run(command, env=self.environment, check=False).returncode == 0

    def last_words(self) -> str:
        """The end of each container's log, for whoever looks for what went wrong."""
        words = []
        for name in self("ps", "--all", "--format", "{{.Names}}", check=False).split():
            command = ["podman", "logs", "--tail", "10", name]
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
            words.append(f"-- {name}\n{done.stdout}{done.stderr}")
        return "\n".join(words)

    def remove_everything(self) -> None:
        """Ends all containers of this storage, and removes the folder."""
        for command in (("pod", "rm", "--all", "--force"), ("rm", "--all", "--force", "--time", "0")):
            with suppress(subprocess.TimeoutExpired):
                self(*command, check=False, timeout=60)
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        below = [mount for mount in mounts if Path(mount).is_relative_to(self.folder)]
        for mount in sorted(below, key=len, reverse=True):
            subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)
        shutil.rmtree(self.folder)


_SECONDS = 5.0


class HealthChecks:
    """Runs the health checks of all containers while the block lasts, as systemd's timers do elsewhere."""

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
