"""The images of a release, where there is an engine that builds them."""

import json
import platform
import shutil
import subprocess
from pathlib import Path

from tests.harness.release.source import NoRelease, Source

IMAGES = {"ttmark-detect": "detect.Dockerfile", "ttmark-gen": "gen.Dockerfile"}


def container_engine() -> str | None:
    """`docker` or `podman`, whichever answers."""
    for name in ("docker", "podman"):
        if (
            shutil.which(name)
            and subprocess.run([name, "info"], check=False, capture_output=True).returncode == 0
        ):
            return name
    return None


def build_images(engine: str, source: Source, target: Path, options: list[str]) -> None:
    """Builds for this machine's processor, and writes name, processor and digest of each.

    Args:
        engine: its command.
        source: the Dockerfiles, and what they copy.
        target: file, JSON.
        options: handed on, such as `--network host`.
    """
    built = {}
    for name, dockerfile in IMAGES.items():
        tag = f"{name}:{source.version}"
        command = [engine, "build", *options, "-f", f"deploy/docker/{dockerfile}", "-t", tag, "."]
        if engine == "podman":
            command[2:2] = ["--format", "docker"]  # which keeps the health check
        if subprocess.run(command, cwd=source.folder, check=False).returncode:
            raise NoRelease(f"{engine} could not build {tag}; --without images leaves them out")
        said = subprocess.run(
            [engine, "inspect", "--format", "{{.Id}}", tag], check=True, capture_output=True, text=True
        )
        built[tag] = {"id": said.stdout.strip(), "processor": platform.machine()}
    target.write_text(json.dumps(built, indent=2) + "\n")
