"""Containers that end, a store that goes away, a full disk: until when, and what was lost."""

import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from tests.stack.client import Client, text_of
from tests.stack.podman import Podman, StackFailed

DISKS = {
    "redis": (64, "uid=999,gid=1000"),
    "gen-state": (16, "uid=10001"),
    "detect-state": (16, "uid=10001"),
    "audit": (64, "uid=10001"),
    "prometheus": (512, "uid=65534"),
    "alertmanager": (16, "uid=65534"),
}
"""MiB and owner of each volume that a service writes to. Prometheus reserves 128 MiB at a time."""


class SmallDisks:
    """Mounts them in `folder`; they outlive the containers, as a disk does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mount(self) -> None:
        """Makes them anew, empty."""
        self.unmount()
        for name, (size, owner) in DISKS.items():
            place = self.folder / name
            place.mkdir(parents=True, exist_ok=True)
            options = f"size={size}m,mode=700,{owner}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "ttmark-stack", place], check=True)

    def unmount(self) -> None:
        """Takes away those that are there."""
        for name in DISKS:
            if (self.folder / name).is_mount():
                subprocess.run(["umount", self.folder / name], check=True)

    def folders(self) -> dict[str, Path]:
        """Where each is filled, by its volume's name."""
        return {f"the volume {name}": self.folder / name for name in DISKS}

    def override(self) -> str:
        """What a Compose file says of them."""
        bound = {
            name: {"driver_opts": {"type": "none", "o": "bind", "device": f"{self.folder / name}"}}
            for name in DISKS
        }
        return yaml.safe_dump({"volumes": bound})


_MOST_SECONDS = 180.0


@dataclass(frozen=True)
class Outcome:
    """Of one fault: seconds until served again, and answers of before that cannot be had any more."""

    fault: str
    seconds: float
    lost: int
    unmarked: int


def served_again(client: Client) -> tuple[float, int]:
    """Seconds until a completion and a verdict are answered, and how many answers had no mark."""
    started = time.monotonic()
    while time.monotonic() - started < _MOST_SECONDS:
        try:
            if client.verdict(text_of(client.complete(300))) == "watermarked":
                return time.monotonic() - started, 0
        except (httpx.HTTPError, KeyError):
            time.sleep(0.5)
        except StackFailed:
            return time.monotonic() - started, 1
    raise StackFailed(f"not served again after {_MOST_SECONDS:.0f} s")


def kill(podman: Podman, client: Client, container: str, known: str) -> Outcome:
    """A container is killed and started anew; a `known` marked text of before is recognised still."""
    job = client.submit([known] * 40)
    podman("kill", "--signal", "KILL", container)
    time.sleep(0.5)
    if podman("inspect", container, "--format", "{{.State.Running}}").strip() != "true":
        podman("start", container)
    seconds, unmarked = served_again(client)
    lost = 40 - client.finished(job)
    lost += client.verdict(known) != "watermarked"
    return Outcome(f"{container} killed", seconds, lost, unmarked)


def store_away(podman: Podman, client: Client, container: str, known: str) -> Outcome:
    """The key store stops for a while. Services go on with the keys that they know."""
    podman("stop", "--time", "10", container)
    unmarked = 0
    started = time.monotonic()
    try:
        document = client.complete(100)
        lost = int(client.verdict(known) != "watermarked" or not text_of(document))
    except StackFailed:
        unmarked, lost = 1, 0
    served = time.monotonic() - started
    podman("start", container)
    _, again = served_again(client)
    return Outcome(f"{container} stopped, and back", served, lost, unmarked + again)


def disk_full(client: Client, name: str, folder: Path, known: str) -> Outcome:
    """A disk, seen as `folder`, is filled; what is asked is answered with a mark or refused."""
    if not folder.is_mount():
        raise StackFailed(f"{folder} is no disk of its own")
    full, meanwhile, unmarked = folder / "full", "answered", 0
    try:
        with suppress(OSError), full.open("wb", buffering=0) as file:
            while file.write(bytes(1 << 20)):
                pass
        try:
            client.complete(100)
            if client.verdict(known) != "watermarked":
                meanwhile = "not found"
        except httpx.HTTPError:
            meanwhile = "refused"
        except StackFailed:
            unmarked = 1
    finally:
        full.unlink(missing_ok=True)
    seconds, again = served_again(client)
    lost = int(meanwhile == "not found" or client.verdict(known) != "watermarked")
    return Outcome(f"{name} full, {meanwhile} meanwhile", seconds, lost, unmarked + again)
