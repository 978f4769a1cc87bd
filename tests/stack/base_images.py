"""Base images from Debian's packages, under the names that our files ask for."""

import os
import subprocess
from pathlib import Path

from tests.stack.podman import Podman, StackFailed

PYTHON_NAMES = ("docker.io/library/python:3.11.13-slim-bookworm", "docker.io/library/python:3.11.13-bookworm")
REDIS_NAME = "docker.io/library/redis:8.2.1-alpine"
PROMETHEUS_NAME = "docker.io/prom/prometheus:v3.5.0"
ALERTMANAGER_NAME = "docker.io/prom/alertmanager:v0.28.1"

# Python 3.11 is Debian 12's. Redis is Debian 13's, for that of 12 has no WAITAOF.
SYSTEMS = {
    "python": ("bookworm", "python3,python3-venv,ca-certificates"),
    "services": ("trixie", "redis-server,prometheus,prometheus-alertmanager,ca-certificates"),
}
RECIPES = {
    PYTHON_NAMES[0]: "FROM localhost/base-python\nRUN ln -s python3 /usr/bin/python\n",
    PYTHON_NAMES[1]: (
        f"FROM {PYTHON_NAMES[0]}\n"
        "RUN apt-get update -qq"
        " && apt-get install -y -qq --no-install-recommends build-essential python3-dev\n"
    ),
    REDIS_NAME: (
        "FROM localhost/base-services\nRUN rm -r /etc/redis && mkdir -p /data && chown 999:1000 /data\n"
    ),
    PROMETHEUS_NAME: (
        "FROM localhost/base-services\n"
        "RUN mkdir -p /prometheus && chown 65534:65534 /prometheus\n"
        'ENTRYPOINT ["/usr/bin/prometheus"]\n'
    ),
    ALERTMANAGER_NAME: (
        "FROM localhost/base-services\n"
        "RUN mkdir -p /alertmanager && chown 65534:65534 /alertmanager\n"
        'ENTRYPOINT ["/usr/bin/prometheus-alertmanager"]\n'
    ),
}


def make(podman: Podman) -> None:
    """Makes those that are not in the storage yet."""
    for kind, (suite, packages) in SYSTEMS.items():
        if podman.has_image(f"localhost/base-{kind}"):
            continue
        archive = podman.folder / f"{kind}.tar"
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", suite, archive]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise StackFailed(f"Debian's packages cannot be had: {done.stderr.strip()[-500:]}")
        podman("import", "--quiet", archive, f"localhost/base-{kind}")
        archive.unlink()
    empty = podman.folder / "empty"
    empty.mkdir(exist_ok=True)
    for name, recipe in RECIPES.items():
        if not podman.has_image(name):
            file = podman.folder / "Dockerfile"
            file.write_text(recipe)
            podman(
                "build", "--quiet", "--format", "docker", "--network", "host", "-t", name, "-f", file, empty
            )


def asked(root: Path) -> set[str]:
    """The images that our Dockerfiles and Compose ask for and that are made here, in full."""
    texts = [path.read_text() for path in (root / "deploy/docker").glob("*.Dockerfile")]
    text = "\n".join([*texts, (root / "docker-compose.yml").read_text()])
    return {name for name in RECIPES if name.removeprefix("docker.io/").removeprefix("library/") in text}
