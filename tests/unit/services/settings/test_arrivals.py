"""Every documented setting reaches its process: from the environment, from .env, from the config map."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.container_environment import Environment, compose_environment, pod_environment
from tests.harness.reference.settings_table import READERS
from tests.unit.services.settings.changed_values import changed_value
from ttmark.services.settings.base import Settings, variable

COMPOSE = {
    "generation": ("gen", "gen-gpu", "gen-vllm"),
    "detection": ("detect",),
    "canary": ("canary",),
    "commands": ("operator",),
}
PODS = {"generation": "generation", "detection": "detection", "canary": "canary", "commands": "operator"}
FOLDERS = ("/audit", "/state")
PLACES = ("/run/secrets/", "/state/", "/files/")

COMPOSE_SETS = {
    "generation": {
        *("HOST", "GEN_PORT", "STORE_URL_FILE", "KEK_FILE", "STATE", "LEDGER_FILE", "AUDIT_FOLDER")
    },
    "detection": {
        *("HOST", "DETECT_PORT", "STORE_URL_FILE", "KEK_FILE", "LEDGER_FILE", "AUDIT_FOLDER"),
        *("CASE_KEY_FILE", "WEBHOOK_SECRET_FILE", "READER_TOKEN_FILE"),
    },
    "canary": {"HOST", "CANARY_PORT", "TOKEN_FILE", "GEN_URL", "DETECT_URL"},
    "commands": {"STORE_URL_FILE", "KEK_FILE", "LEDGER_FILE", "AUDIT_FOLDER"},
}
"""What the containers of Compose set themselves: where they listen, where secrets and state lie."""
PODS_SET = {
    "generation": {"STORE_URL_FILE"},
    "detection": {"STORE_URL_FILE"},
    "canary": {"TOKEN_FILE"},
    "commands": {"STORE_URL_FILE"},
}

Reading = tuple[str, type[Settings], str]


def readings() -> Iterator[Reading]:
    for reader, classes in READERS.items():
        for cls in classes:
            for field in cls.model_fields:
                yield reader, cls, field  # type: ignore[misc]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("audit", "state", "files", "run/secrets", "changed"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def read(
    cls: type[Settings], field: str, environment: Environment, folder: Path, patch: pytest.MonkeyPatch
) -> Any:
    """What a process reads, for which the places of a container lie in `folder`."""
    for name in [name for name in os.environ if name.startswith("TTMARK_")]:
        patch.delenv(name)
    for name, value in environment.items():
        if value in FOLDERS:
            path = folder / value.lstrip("/")
            path.mkdir(exist_ok=True)
            value = str(path)
        elif value.startswith(PLACES):
            path = folder / value.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            value = str(path)
        patch.setenv(name, value)
    return getattr(cls(), field)


def lost(environments: dict[str, list[Any]], folder: Path, patch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The settings of each reader that its process does not see as they were set."""
    missing: dict[str, set[str]] = {reader: set() for reader in READERS}
    for reader, cls, field in readings():
        name = variable(field)
        value = changed_value(field, cls.model_fields[field], folder / "changed")
        expected = read(cls, field, {name: value}, folder, patch)
        for environment in environments[reader]:
            if read(cls, field, environment({name: value}), folder, patch) != expected:
                missing[reader].add(name.removeprefix("TTMARK_"))
    return missing


def test_every_setting_is_read_from_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _, cls, field in readings():
        value = changed_value(field, cls.model_fields[field], folder / "changed")
        default = read(cls, field, {}, folder, monkeypatch)
        assert read(cls, field, {variable(field): value}, folder, monkeypatch) != default, field


def test_every_setting_in_dotenv_reaches_its_containers(folder, monkeypatch):
    environments = {
        reader: [lambda given, name=name: compose_environment(name, given) for name in names]
        for reader, names in COMPOSE.items()
    }
    assert lost(environments, folder, monkeypatch) == COMPOSE_SETS


def test_every_setting_in_the_config_map_reaches_its_pods(folder, monkeypatch):
    environments = {
        reader: [lambda given, name=name: pod_environment(name, given)] for reader, name in PODS.items()
    }
    assert lost(environments, folder, monkeypatch) == PODS_SET
