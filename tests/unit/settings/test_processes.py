"""Real processes keep the promise: one line that begins `ttmark:`, no traceback, no secret, before torch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "hunter2"
# Each command, and what a process alone sees; `test_wrong_values.py` has every value of every setting.
Case = tuple[str, dict[str, str], str]
REFUSED: list[Case] = [
    ("serve detect", {"TTMARK_DETECT_PORT": "http"}, "TTMARK_DETECT_PORT: "),
    ("serve detect", {"TTMARK_HOST": "nan", "TTMARK_LEDGER_FILE": "none"}, "TTMARK_HOST"),
    ("serve gen", {"TTMARK_KEK": SECRET}, "TTMARK_KEK: "),
    ("serve canary", {"TTMARK_TOKEN": SECRET}, "TTMARK_TOKEN: "),
    ("up", {"TTMARK_CORS_ORIGINS": "app.example.org"}, "TTMARK_CORS_ORIGINS: "),
    ("up --state file", {}, "'--state'"),
    ("keys list", {"TTMARK_STORE_URL_FILE": f"redis://:{SECRET}@host"}, "TTMARK_STORE_URL_FILE: "),
    ("keys list", {}, "mkdir -p .ttmark"),
    ("tokens list", {"TTMARK_LEDGER_FILE": "typo/ledger.json"}, "mkdir -p typo"),
    ("audit export -", {"TTMARK_AUDIT_KEEP_DAYS": "1e400"}, "TTMARK_AUDIT_KEEP_DAYS: "),
    ("detect file", {"TTMARK_DETECT_URL": "localhost"}, "TTMARK_DETECT_URL"),
    ("generate a", {"TTMARK_GEN_URL": f"http://:{SECRET}@["}, "TTMARK_GEN_URL"),
    ("generate a", {"TTMARK_TOKEN": f"{SECRET}\u00e9"}, "TTMARK_TOKEN"),
]
# What commands share is imported once, where importing torch is a traceback; each command is a fork of that.
FORKS = """
import json, os, sys
import ttmark.services.settings.unknown_variables
from ttmark.services.cli.main import app

for folder, arguments, variables in json.load(sys.stdin):
    if not os.fork():
        os.chdir(folder)
        os.environ.update(variables)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{folder}.{name}", os.O_CREAT | os.O_WRONLY), number)
        app(arguments, prog_name="ttmark")
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


OURS = {"TTMARK_KEK": "01" * 32, "TTMARK_TOKEN": "ttm_a_b"}


def python(given: str, *arguments: str, path: Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    others = {name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
    environment = others | OURS | {"PYTHONPATH": f"{path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, Path]]:
    """For each command its exit status, and the folder in which it ran."""
    without_torch = tmp_path_factory.mktemp("path")
    (without_torch / "torch.py").write_text("raise RuntimeError('torch is imported')")
    folders = [tmp_path_factory.mktemp("case") for _ in REFUSED]
    for folder in folders:
        (folder / "file").write_text("a text")
    asked = [
        (str(folder), command.split(), variables)
        for folder, (command, variables, _) in zip(folders, REFUSED, strict=True)
    ]
    done = python(json.dumps(asked), "-c", FORKS, path=without_torch, cwd=without_torch)
    assert done.returncode == 0, done.stderr
    return list(zip(map(int, done.stdout.split()), folders, strict=True))


@pytest.mark.parametrize("number", range(len(REFUSED)), ids=lambda number: str(REFUSED[number])[:50])
def test_a_process_ends_with_one_line_that_says_what_is_wrong(ended, number):
    code, folder = ended[number]
    said = folder.with_suffix(".err").read_text()
    assert (code, said.count("\n")) in ((1, 1), (2, 1)), said
    assert said.startswith("ttmark: ")
    assert REFUSED[number][2] in said
    assert SECRET not in said
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_a_command_that_needs_torch_says_what_is_wrong_too(tmp_path: Path) -> None:
    done = python("", "-m", "ttmark.services", "eval", "direct", "--no-such", path=tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("ttmark: ")
    assert "--no-such" in done.stderr


def test_the_default_state_folder_is_made_by_what_makes_keys(tmp_path: Path) -> None:
    made = python("", "-m", "ttmark.services", "tokens", "create", path=tmp_path, cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    state = tmp_path / ".ttmark"
    assert {path.name for path in state.iterdir()} >= {"keys.db"}
    assert state.stat().st_mode & 0o777 == 0o700
