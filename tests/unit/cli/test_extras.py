"""A command whose optional libraries are not installed says so in one line; in a process that lacks them."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.harness.missing_libraries import Outcome
from ttmark.services.extras import CONTAINS, MODULES

ROOT = Path(__file__).resolve().parents[3]
ALL = tuple(MODULES)

# What is missing, the command, and what the one line says is to be installed.
REFUSED = [
    (("gen",), "serve gen", "gen"),
    (("detect",), "serve detect", "detect"),
    (("gen",), "up --exit", "gen"),
    (("gen", "detect"), "up --exit", "gen,detect"),
    (("eval",), "eval direct", "eval"),
    (("eval",), "bench detect", "eval"),
    (("eval",), "conformance run --key a --model demo --out out", "eval"),
    (("eval",), "conformance compare a b", "eval"),
    (("gen", "eval"), "eval --help", "gen"),
    (("detect",), "bench --help", "detect"),
    (("detect",), "detect --bulk in.jsonl --out out.jsonl", "detect"),
    (("bulk",), "detect --bulk in.jsonl --out out.parquet", "bulk"),
    (("bulk",), "detect --bulk in.parquet --out out.jsonl", "bulk"),
    (("ray",), "detect --bulk in.jsonl --out out --ray local", "ray"),
]
Outcomes = dict[tuple[tuple[str, ...], str], Outcome]
SENT = "detect a.txt --url http://127.0.0.1:1 --token t"
SERVED = [(ALL, SENT), (ALL, "--version")]


def run_in(folder: Path, *command: str, given: str = "") -> str:
    """What a process of Python writes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
    environment |= {"PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    python = [sys.executable, *command]
    done = subprocess.run(
        python, cwd=folder, env=environment, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What each command did where the libraries of some extras cannot be imported."""
    folder = tmp_path_factory.mktemp("lacking")
    (folder / "a.txt").write_text("a text")
    cases = [(extras, command) for extras, command, _ in REFUSED] + SERVED
    asked = [
        ([module for extra in extras for module in MODULES[extra]], command.split())
        for extras, command in cases
    ]
    found = json.loads(run_in(folder, "-m", "tests.harness.missing_libraries", given=json.dumps(asked)))
    return dict(zip(cases, map(tuple, found), strict=True))


@pytest.mark.parametrize(("extras", "command", "wanted"), REFUSED)
def test_a_missing_extra_is_one_line_that_names_the_command_which_installs_it(
    outcomes: Outcomes, extras: tuple[str, ...], command: str, wanted: str
) -> None:
    code, written, errors = outcomes[extras, command]
    assert (code, written) == (1, ""), errors
    assert re.fullmatch(
        rf"ttmark: \S.* not installed: pip install 'ttmark\[{wanted}\]', "
        rf"in a checkout \.venv/bin/pip install -e '\.\[{wanted}\]'\n",
        errors,
    )


# Both in one process: to import torch takes longer than all else here.
HELPED = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))
from typer.testing import CliRunner
from ttmark.services.cli.main import app
for command in (["eval"], ["bench", "detect", "--help"]):
    print(CliRunner().invoke(app, command).output)
"""


def test_help_of_eval_and_bench_needs_no_more_than_the_services_do(tmp_path: Path) -> None:
    said = run_in(tmp_path, "-c", HELPED, *MODULES["eval"])
    for command in ("eval", "bench"):
        assert f"Usage: ttmark {command}" in said
    assert "Traceback" not in said
    assert "ttmark: " not in said


def test_files_are_sent_to_a_service_without_any_extra(outcomes: Outcomes) -> None:
    code, _, errors = outcomes[ALL, SENT]
    assert code == 1
    assert re.fullmatch(r"ttmark: http://127\.0\.0\.1:1 does not answer: .*\n", errors)


def test_the_version_is_printed(outcomes: Outcomes) -> None:
    _, written, errors = outcomes[ALL, "--version"]
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
