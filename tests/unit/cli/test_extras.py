"""A command whose optional libraries are not installed says so in one line; in a process that lacks them."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from ttmark.services.extras import CONTAINS, MODULES

ROOT = Path(__file__).resolve().parents[3]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_without(tmp_path: Path) -> Run:
    """Runs `ttmark` where the libraries of some extras cannot be imported."""

    def run(extras: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
        absent = [module for extra in extras for module in MODULES[extra]]
        (tmp_path / "sitecustomize.py").write_text(
            f"import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n"
        )
        paths = os.pathsep.join((str(tmp_path), str(ROOT)))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
        return subprocess.run(
            [sys.executable, "-m", "ttmark.services", *arguments],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": paths, "COLUMNS": "120"},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run


@pytest.mark.parametrize(
    ("extras", "command", "wanted"),
    [
        (("gen",), "serve gen", "gen"),
        (("detect",), "serve detect", "detect"),
        (("gen",), "up --exit", "gen"),
        (("gen", "detect"), "up --exit", "gen,detect"),
        (("eval",), "eval direct", "eval"),
        (("eval",), "bench core", "eval"),
        (("eval",), "conformance run --key a --model demo --out out", "eval"),
        (("eval",), "conformance compare a b", "eval"),
        (("gen", "eval"), "eval --help", "gen"),
        (("detect",), "bench --help", "detect"),
        (("detect",), "detect --bulk in.jsonl --out out.jsonl", "detect"),
        (("bulk",), "detect --bulk in.jsonl --out out.parquet", "bulk"),
        (("bulk",), "detect --bulk in.parquet --out out.jsonl", "bulk"),
        (("ray",), "detect --bulk in.jsonl --out out --ray local", "ray"),
    ],
)
def test_a_missing_extra_is_one_line_that_names_the_command_which_installs_it(
    run_without: Run, extras: tuple[str, ...], command: str, wanted: str
) -> None:
    result = run_without(extras, *command.split())
    assert (result.returncode, result.stdout) == (1, ""), result.stderr
    assert re.fullmatch(
        rf"ttmark: \S.* not installed: pip install 'ttmark\[{wanted}\]', "
        rf"in a checkout \.venv/bin/pip install -e '\.\[{wanted}\]'\n",
        result.stderr,
    )


@pytest.mark.parametrize("command", ["eval", "bench core --help"])
def test_help_of_eval_and_bench_needs_no_more_than_the_services_do(run_without: Run, command: str) -> None:
    result = run_without(("eval",), *command.split())
    assert "Usage: ttmark" in result.stdout + result.stderr, result.stderr
    assert "Traceback" not in result.stderr


def test_files_are_sent_to_a_service_without_any_extra(run_without: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a text")
    options = ("--url", "http://127.0.0.1:1", "--token", "t")
    result = run_without(tuple(MODULES), "detect", str(tmp_path / "a.txt"), *options)
    assert result.returncode == 1
    assert re.fullmatch(r"ttmark: http://127\.0\.0\.1:1 does not answer: .*\n", result.stderr)


def test_the_version_is_printed(run_without: Run) -> None:
    result = run_without(tuple(MODULES), "--version")
    assert re.fullmatch(r"ttmark \d+\.\d+\.\d+\n", result.stdout), result.stderr


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
