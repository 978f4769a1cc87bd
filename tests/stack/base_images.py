"""Base images from Debian's packages, under the names that our files ask for."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tests.stack.podman import Podman, StackFailed

_CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")


def build_arguments(folder: Path) -> list[str]:
    """Options of `podman build`, after which pip finds in a build what it finds here."""
    settings = _pip_settings()
    configuration = folder / "pip.conf"
    lines = [f"{name} = {value}" for name, value in settings.items()]
    configuration.write_text("\n".join(["[global]", *lines, ""]))
    arguments = ["--network", "host", "--volume", f"{configuration}:/etc/pip.conf:ro"]
    named = {name: os.environ[name] for name in _CERTIFICATES if os.environ.get(name)}
    for name, value in named.items():
        arguments += ["--env", f"{name}={value}"]
    for name in (*_PROXIES, *(proxy.upper() for proxy in _PROXIES)):
        if os.environ.get(name):
            arguments += ["--env", f"{name}={os.environ[name]}"]
    for path in sorted({*_paths(settings), *filter(os.path.exists, named.values())}):
        arguments += ["--volume", f"{path}:{path}:ro"]
    return arguments


def _pip_settings() -> dict[str, str]:
    """pip's own account of its settings: environment over files, `global` alone."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    settings: dict[str, str] = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in ("global", ":env:") and (section == ":env:" or key not in settings):
            settings[key] = value.strip("'")
    return settings


def _paths(settings: dict[str, str]) -> set[str]:
    """Files and folders of this machine that the settings name; of an index by a file: address its parent,
    beside whose pages its files may lie."""
    words = [word for value in settings.values() for word in value.split()]
    found = {
        str(Path(urlsplit(word).path).parent) if word.startswith("file:") else word for word in words
    } - {"/"}
    return {path for path in found if path.startswith("/") and Path(path).exists()}


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
