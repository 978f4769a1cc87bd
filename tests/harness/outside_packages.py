"""Packages of others that tests ask for, each in a folder of its own; tests skip where one cannot be had."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock


def with_pip(cache: pytest.Cache, *requirements: str) -> Path:
    """A folder for PYTHONPATH."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target"]
    return _installed(cache, command, requirements)


def with_npm(cache: pytest.Cache, *packages: str) -> Path:
    """A folder with `node_modules`."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not there")
    return _installed(cache, ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix"], packages)


def _installed(cache: pytest.Cache, command: list[str], names: tuple[str, ...]) -> Path:
    folder = cache.mkdir("ttmark-outside") / "-".join(names).replace("/", "-")
    done = folder / "done"
    with FileLock(f"{folder}.lock"):
        if not done.exists():
            result = subprocess.run(
                [*command, str(folder), *names], check=False, capture_output=True, text=True, timeout=400
            )
            if result.returncode != 0:
                pytest.skip(f"{', '.join(names)} cannot be had: {result.stderr.strip()[-200:]}")
            done.touch()
    return folder
