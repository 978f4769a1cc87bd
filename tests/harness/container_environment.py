"""The environment of a container's process, as Compose and Kubernetes make it from the repository's files."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
_VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::-([^${}]*))?\}")

Environment = dict[str, str]


def compose_environment(service: str, dotenv: Mapping[str, str]) -> Environment:
    """Of a service of docker-compose.yml: what .env says, where the service names that file, then its own."""
    described: dict[str, Any] = _documents(ROOT / "docker-compose.yml")[0]["services"][service]
    named = any(file["path"] == ".env" for file in described.get("env_file", []))
    own = {
        name: interpolated(str(value), dotenv)[0] for name, value in described.get("environment", {}).items()
    }
    return {**(dotenv if named else {}), **own}


def interpolated(text: str, values: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A text as Compose reads it, and its variables with their defaults; one may stand in a default."""
    defaults: dict[str, str] = {}

    def value(match: re.Match[str]) -> str:
        defaults[match[1]] = match[2] or ""
        return values.get(match[1]) or match[2] or ""

    while _VARIABLE.search(text):
        text = _VARIABLE.sub(value, text)
    return text, defaults


def pod_environment(workload: str, added: Mapping[str, str]) -> Environment:
    """Of a Deployment or Job in deploy/kubernetes, with what is added to the config map."""
    base = ROOT / "deploy/kubernetes/base"
    folder = ROOT / "deploy/kubernetes/operator" if workload == "operator" else base
    documents = _documents(folder / f"{workload}.yaml")
    pod = next(one["spec"]["template"]["spec"] for one in documents if one["kind"] in ("Deployment", "Job"))
    (container,) = pod["containers"]
    own = {entry["name"]: entry["value"] for entry in container["env"]}
    if {"configMapRef": {"name": "ttmark"}} not in container["envFrom"]:
        return own
    return {**_documents(base / "configmap.yaml")[0]["data"], **added, **own}


@cache
def _documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))
