"""Containers that end, a store that goes away, a full disk: until when, and what was lost."""

import time
from dataclasses import dataclass

import httpx

from tests.stack.client import Client, text_of
from tests.stack.podman import Podman, StackFailed

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
    """A container is killed; its restart policy, or who runs it, starts it anew.

    Args:
        known: a marked text of before, which has to be recognised still.
    """
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


def disk_full(podman: Podman, client: Client, container: str, folder: str, known: str) -> Outcome:
    """A small file system over a folder of a service is filled; requests go on."""
    fill = f"dd if=/dev/zero of={folder}/full bs=1M 2>/dev/null; true"
    podman("exec", container, "sh", "-c", fill)
    try:
        seconds, unmarked = served_again(client)
        lost = int(client.verdict(known) != "watermarked")
    finally:
        podman("exec", container, "rm", "-f", f"{folder}/full")
    return Outcome(f"{folder} of {container} full", seconds, lost, unmarked)
