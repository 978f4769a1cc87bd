"""A variable `TTMARK_*` that nobody reads ends the start, and the nearest name is told."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ttmark.services.cli.main import app
from ttmark.services.settings.base import variable
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.settings.unknown_variables import check_names, known_names, of_features

MISTYPED = {
    "TTMARK_POLICYFILE": "TTMARK_POLICY_FILE",
    "TTMARK_LABLE": "TTMARK_LABEL",
    "TTMARK_DETECT_PROT": "TTMARK_DETECT_PORT",
    "TTMARK_MAX_CONCURENCY": "TTMARK_MAX_CONCURRENCY",
    "TTMARK_AUDIT_FOLDERS": "TTMARK_AUDIT_FOLDER",
    "ttmark_default_keys": "TTMARK_DEFAULT_KEY",
    "TTMARK_TRUSTED_PROXY": "TTMARK_TRUSTED_PROXIES",
}


@pytest.mark.parametrize("name", MISTYPED)
def test_a_mistyped_variable_stops_every_command_with_the_nearest_name(name, monkeypatch):
    monkeypatch.setenv(name, "hunter2")
    for command in (["serve", "detect"], ["up"], ["keys", "list"], ["generate", "a"]):
        result = CliRunner().invoke(app, command)
        said = f"ttmark: {name} is no setting: did you mean {MISTYPED[name]}?\n"
        assert (result.exit_code, result.stdout, result.stderr) == (1, "", said)


def test_help_is_given_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTMARK_LABLE", "eu")
    assert CliRunner().invoke(app, ["keys", "list", "--help"]).exit_code == 0


def test_all_wrong_values_of_a_service_and_its_features_are_told_at_once(monkeypatch) -> None:
    of_all = [DetectionSettings, KeyStoreSettings, *of_features("ttmark.detect_service.features")]
    numbers = {
        kind: variable(
            next(name for name, field in kind.model_fields.items() if field.annotation in {int, float})
        )
        for kind in of_all
        if {int, float} & {field.annotation for field in kind.model_fields.values()}
    }
    wrong = list(numbers.values())[:5]
    for name in wrong:
        monkeypatch.setenv(name, "hunter2")
    result = CliRunner().invoke(app, ["serve", "detect"])
    said = result.stderr.removeprefix("ttmark: ").split("; ")
    assert ([one.partition(":")[0] for one in said], "hunter2" in result.stderr) == (wrong, False)


@pytest.mark.parametrize(
    "environment",
    [
        {"TTMARK_SERVICE_HOST": "10.0.0.1", "TTMARK_SERVICE_PORT": "80", "TTMARK_PORT": "tcp://10.0.0.1:80"},
        {"TTMARK_X_SERVICE_HOST": "10.0.0.1", "TTMARK_X_SERVICE_PORT_HTTP": "80"},
        {"TTMARK_X_PORT": "tcp://10.0.0.1:80", "TTMARK_X_PORT_80_TCP": "tcp://10.0.0.1:80"},
        {"TTMARK_X_PORT_80_TCP_PROTO": "tcp", "TTMARK_X_PORT_80_UDP_ADDR": "10.0.0.1"},
        {"ttmark_host": "127.0.0.1", "TTMARK_VERSION": "0.1.0", "HOME": "/root"},
    ],
)
def test_what_kubernetes_and_compose_set_is_known(environment: dict[str, str]) -> None:
    check_names(environment)


def test_a_port_that_kubernetes_set_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTMARK_GEN_PORT", "tcp://10.0.0.1:8000")
    result = CliRunner().invoke(app, ["serve", "gen"])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "TTMARK_GEN_PORT: Kubernetes sets this" in result.stderr
    assert "enableServiceLinks: false" in result.stderr


def _variables_of_options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.envvar is not None:
            yield parameter.envvar
    for below in getattr(command, "commands", {}).values():
        yield from _variables_of_options(below)


def test_every_variable_that_the_project_spells_is_known(root: Path) -> None:
    spelt = set(_variables_of_options(typer.main.get_command(app)))
    assert spelt
    files = [root / "docker-compose.yml", root / "Makefile", root / ".env.example", root / "README.md"]
    folders = ("deploy", "docs/runbooks", "docs/tutorials", "services", "tests/harness", "tests/contract")
    files += [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    for path in files:
        if path.suffix not in (".pyc", ".png"):
            spelt |= set(
                re.findall(r"\bTTMARK_[A-Z0-9_]*[A-Z0-9]\b(?![*<{])", path.read_text(errors="ignore"))
            )
    assert spelt - known_names() == set()


@pytest.fixture
def root(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.rootpath
