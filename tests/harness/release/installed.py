"""The wheel in an empty environment and an empty folder, as somebody without the repository has it."""

import os
import re
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.harness.release.source import NoRelease

EVERYTHING = "gen,detect,provenance"
VERDICTS = ["watermarked", "not_detected", "not_detected"]
SERVED = """
import ttmark

key = ttmark.Key.new()
text = ttmark.load("demo").generate("The old lighthouse stood", key=key, max_new_tokens=200, seed=1)
assert ttmark.detect(text, key).verdict == "watermarked", text
"""
DETECTION = """
import ttmark

key = ttmark.Key.new()
assert ttmark.detect("The old lighthouse stood. " * 40, key, model="demo").verdict != "watermarked"
"""


@dataclass(frozen=True)
class Wish:
    """A Python, and which of the wheel's extras to try there: without `gen` nothing is written."""

    python: str
    extras: str = EVERYTHING

    @classmethod
    def parse(cls, words: str) -> "Wish":
        """`python3.11`, or `python3.13=detect`."""
        python, _, extras = words.partition("=")
        return cls(python, extras or EVERYTHING)

    @property
    def writes(self) -> bool:
        """Whether texts can be written there."""
        return "gen" in self.extras.split(",")


def install(wish: Wish, wheel: Path, constraints: Path, folder: Path) -> Path:
    """The Python of a new environment that has the wheel."""
    version = _run([wish.python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"], Path.cwd())
    environment = folder / f"python-{version.strip()}"
    _run([wish.python, "-m", "venv", "--clear", str(environment)], Path.cwd())
    python = environment / "bin/python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if wish.writes:  # first and by its version, from the index that its builds for CPUs have
        index = os.environ.get("TTMARK_TORCH_INDEX")
        torch = re.findall(r"^torch==.*$", constraints.read_text(), re.M)
        _run([*pip, *(["--index-url", index] if index else []), *torch], Path.cwd())
    _run([*pip, "-c", str(constraints), f"{wheel.resolve()}[{wish.extras}]"], Path.cwd())
    return python


def try_out(wish: Wish, python: Path, folder: Path) -> str:
    """What was seen to work; `folder` is empty, and nothing of the repository is on the path."""
    folder.mkdir()
    _run([str(python), "-P", "-c", SERVED if wish.writes else DETECTION], folder)
    command = str(python.with_name("ttmark"))
    if not wish.writes:
        _run([command, "detect", "--help"], folder)
        return "the library finds nothing in a text without a mark"
    ports = [f"--{service}-port={_free_port()}" for service in ("gen", "detect")]
    said = _run([command, "up", "--model", "demo", "--exit", *ports], folder)
    verdicts = re.findall(r"\b(watermarked|not_detected|too_short)\b(?= +│)", said)
    if verdicts != VERDICTS:
        raise NoRelease(f"`ttmark up` showed {verdicts}, not {VERDICTS}:\n{said}")
    return "`ttmark up` and the library's three lines"


def _run(command: list[str], folder: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TTMARK_", "PYTHON"))}
    try:
        run = subprocess.run(command, cwd=folder, env=kept, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NoRelease(f"there is no {command[0]}") from error
    if run.returncode:
        raise NoRelease(f"{' '.join(command[:4])} failed:\n{run.stdout}{run.stderr}".rstrip())
    return run.stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
