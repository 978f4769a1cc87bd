"""A command whose optional libraries are not installed says so in one line; in a process that lacks them."""

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.harness.forked_commands import ForkedCommands
from tests.harness.imports import ROOT
from ttmark.services.startup import CONTAINS, MODULES

# What is missing, the command, and what the one line says is to be installed.
REFUSED = [
    (("gen",), "serve gen", "gen"),
    (("detect",), "serve detect", "detect"),
    (("gen",), "up --exit", "gen"),
    (("gen", "detect"), "up --exit", "gen,detect"),
    (("eval",), "eval results", "eval"),
    (("eval",), "bench generate --model demo", "eval"),
    (("eval",), "conformance run --key a --model demo --out out", "eval"),
    (("eval",), "conformance compare a b", "eval"),
    (("gen", "eval"), "eval --help", "gen"),
    (("detect",), "bench --help", "detect"),
    (("detect",), "detect --bulk in.jsonl --out out.jsonl", "detect"),
    (("bulk",), "detect --bulk in.jsonl --out out.parquet", "bulk"),
    (("bulk",), "detect --bulk in.parquet --out out.jsonl", "bulk"),
    (("ray",), "detect --bulk in.jsonl --out out --ray local", "ray"),
]


def missing(*extras: str) -> list[str]:
    return [module for extra in extras for module in MODULES[extra]]


@pytest.mark.parametrize(("extras", "command", "wanted"), REFUSED)
def test_a_missing_extra_is_one_line_that_names_the_command_which_installs_it(
    commands: ForkedCommands, tmp_path: Path, extras: tuple[str, ...], command: str, wanted: str
) -> None:
    code, written, errors = commands.run(*command.split(), folder=tmp_path, absent=missing(*extras))
    assert (code, written) == (1, ""), errors
    assert re.fullmatch(
        rf"ttmark: \S.* not installed: pip install 'ttmark\[{wanted}\]', "
        rf"in a checkout \.venv/bin/pip install -e '\.\[{wanted}\]'\n",
        errors,
    )


@pytest.mark.long  # they import torch
@pytest.mark.parametrize("command", ["eval", "bench"])
def test_help_of_eval_and_bench_needs_no_more_than_the_services_do(
    commands: ForkedCommands, tmp_path: Path, command: str
) -> None:
    helped = commands.run(command, "--help", folder=tmp_path, absent=missing("eval"))
    assert (helped.code, helped.errors) == (0, "")
    assert f"Usage: ttmark {command}" in helped.output


def test_files_are_sent_to_a_service_without_any_extra(commands: ForkedCommands, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    command = "detect a.txt --url http://127.0.0.1:1 --token t"
    code, _, errors = commands.run(*command.split(), folder=tmp_path, absent=missing(*MODULES))
    assert code == 1
    assert re.fullmatch(r"ttmark: http://127\.0\.0\.1:1 does not answer: .*\n", errors)


def test_the_version_is_printed(commands: ForkedCommands, tmp_path: Path) -> None:
    _, written, errors = commands.run("--version", folder=tmp_path, absent=missing(*MODULES))
    assert re.fullmatch(r"ttmark \d+\.\d+\.\d+\n", written), errors


def test_every_library_of_an_extra_is_asked_for() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    module_of: dict[str, set[str]] = {}
    for module, distributions in packages_distributions().items():
        for name in distributions:
            module_of.setdefault(_normal(name), set()).add(module)
    for extra, modules in MODULES.items():
        names = [re.split(r"[<>=;~! ]", requirement)[0] for requirement in declared[extra]]
        own = [name for name in names if not name.startswith("ttmark[")]
        contained = {name for name in names if name.startswith("ttmark[")}
        assert contained == ({f"ttmark[{','.join(CONTAINS[extra])}]"} if CONTAINS[extra] else set())
        assert len(own) == len(modules)
        for name in own:
            assert module_of[_normal(name.partition("[")[0])] & set(modules), f"{name} of {extra}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
