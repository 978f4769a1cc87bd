"""How this machine reaches its package index, told to builds: pip's settings, certificates, proxies."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

_CERTIFICATES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")


def build_arguments(folder: Path) -> list[str]:
    """Options of `podman build`, after which pip finds in a build what it finds here.

    Args:
        folder: for a copy of pip's settings.
    """
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
