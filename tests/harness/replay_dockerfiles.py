#!/usr/bin/env python3
"""Runs the steps of a Dockerfile in an empty folder, on a machine without a container engine.

    python tests/harness/replay_dockerfiles.py deploy/docker/detect.Dockerfile

COPY takes files from the repository as `.dockerignore` leaves them, RUN runs as written with the
image's folders moved under the empty one, and at last the image's own interpreter imports the service. What
this cannot show: the base image itself and its system packages. Standard library only.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
MOVED = ("/src", "/opt", "/models", "/state", "/audit", "/cache", "/tmp")
NEEDS_ROOT = ("useradd", "chown")
IMPORTED_LATE = {"detect": ["ttmark.detect_service.extraction.readers_by_format"]}
"""Of each service, what it imports only once it is used, in a process of its own."""


@dataclass
class Image:
    """What the steps so far have made: a folder that stands for `/`, and the environment of RUN."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    entry: list[str] = field(default_factory=list)

    def path(self, inside: str) -> Path:
        """Where the image's absolute or relative path lies on this machine."""
        absolute = inside if inside.startswith("/") else f"{self.folder.rstrip('/')}/{inside}"
        return self.root / absolute.strip("/")

    def moved(self, text: str) -> str:
        """`text` with the image's folders replaced by where they lie."""
        names = "|".join(re.escape(name) for name in MOVED)
        return re.sub(rf"(?<![\w.}}])({names})(?=[/\s:\"']|$)", rf"{self.root}\1", text)


def instructions(dockerfile: Path) -> Iterator[tuple[str, str]]:
    """Every instruction with its arguments, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile.read_text(), flags=re.MULTILINE)
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip():
            name, _, arguments = line.strip().partition(" ")
            yield name.upper(), arguments.strip()


def replay(dockerfile: Path, root: Path, arguments: dict[str, str]) -> Image:
    """Runs every step."""
    image = Image(root)
    for name, rest in instructions(dockerfile):
        print(f"{name} {rest}", flush=True)
        match name:
            case "FROM":
                image.variables, image.folder = {}, "/"
            case "ARG":
                variable, _, default = rest.partition("=")
                image.variables[variable] = arguments.get(
                    variable, shlex.split(default)[0] if default else ""
                )
            case "ENV":
                for pair in shlex.split(rest):
                    variable, _, value = pair.partition("=")
                    image.variables[variable] = value
            case "WORKDIR":
                image.folder = rest
                image.path(rest).mkdir(parents=True, exist_ok=True)
            case "COPY":
                _copy(image, shlex.split(rest))
            case "RUN":
                _run(image, rest)
            case "CMD":
                image.entry = [part.strip('" ') for part in rest.strip("[]").split(",")]
            case "USER" | "EXPOSE" | "HEALTHCHECK":
                pass
            case _:
                raise ValueError(f"{dockerfile}: cannot replay {name}")
    return image


def _copy(image: Image, parts: list[str]) -> None:
    if parts[0].startswith("--from="):
        return  # both stages share one root here
    *sources, target = parts
    for source in sources:
        here, there = REPOSITORY / source, image.path(target)
        if here.is_dir():
            shutil.copytree(here, there, symlinks=True, ignore=_ignored, dirs_exist_ok=True)
        else:
            there.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)


def _ignored(_: str, names: list[str]) -> set[str]:
    patterns = [line.split("/")[-1] for line in (REPOSITORY / ".dockerignore").read_text().split()]
    return {name for name in names if any(fnmatch(name, pattern) for pattern in patterns)}


def _run(image: Image, command: str) -> None:
    tools = image.root / "tools"
    tools.mkdir(exist_ok=True)
    (image.root / "tmp").mkdir(exist_ok=True)
    for name in NEEDS_ROOT:
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    if not (tools / "python").exists():
        (tools / "python").symlink_to(sys.executable)
    path = f"{image.moved(image.variables.get('PATH', '')).replace('$PATH', '')}:{tools}:/usr/bin:/bin"
    # pip finds packages as it does for whoever runs this script.
    own = {name: value for name, value in os.environ.items() if name == "HOME" or name.startswith("PIP_")}
    environment = own | image.variables | {"PATH": path.strip(":")}
    subprocess.run(
        ["/bin/sh", "-ec", image.moved(command)], cwd=image.path(image.folder), env=environment, check=True
    )


def check(image: Image, absent: tuple[str, ...]) -> None:
    """Imports the service that CMD starts, with the image's interpreter and nothing of the repository."""
    service = image.entry[-1]
    modules = ", ".join([f"ttmark.services.{service}", *IMPORTED_LATE.get(service, [])])
    code = (
        f"import importlib.util, sys, {modules};"
        f"found = [name for name in {absent!r} if importlib.util.find_spec(name)];"
        "sys.exit(f'must not be installed: {found}' if found else 0)"
    )
    binaries = image.root / "opt/ttmark/bin"
    subprocess.run([binaries / "python", "-I", "-c", code], cwd=image.root, check=True)
    subprocess.run(
        [binaries / image.entry[0], *image.entry[1:], "--help"],
        cwd=image.root,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dockerfile", type=Path, nargs="+")
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    arguments = dict(pair.split("=", 1) for pair in options.build_arg)
    for dockerfile in options.dockerfile:
        with tempfile.TemporaryDirectory(prefix="ttmark-image-") as root:
            image = replay(dockerfile, Path(root), arguments)
            check(image, absent=() if image.entry[-1] == "gen" else ("torch", "transformers"))
            size = sum(path.stat().st_size for path in (image.root / "opt").rglob("*") if path.is_file())
            print(
                f"{dockerfile.name}: every step runs, ttmark.services.{image.entry[-1]} imports, "
                f"{size >> 20} MiB"
            )


if __name__ == "__main__":
    main()
