"""Real processes keep the promise: one line that begins `ttmark:`, no traceback, no secret, before torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "hunter2"
# Each command, and what a process alone sees; `test_wrong_values.py` has every value of every setting.
REFUSED: list[tuple[str, dict[str, str], str]] = [
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
    ("eval direct --no-such", {}, "--no-such"),
]


def started(command: str, folder: Path, variables: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """`ttmark` in a folder of its own, where importing torch would be a traceback."""
    (folder / "file").write_text("a text")
    if not command.startswith("eval"):
        (folder / "torch.py").write_text("raise RuntimeError('torch is imported')")
    ours = {
        "TTMARK_KEK": "01" * 32,
        "TTMARK_TOKEN": "ttm_a_b",
        "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}",
    }
    return subprocess.run(
        [sys.executable, "-m", "ttmark.services", *command.split()],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
        | ours
        | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(("command", "variables", "named"), REFUSED, ids=lambda value: str(value)[:50])
def test_a_process_ends_with_one_line_that_says_what_is_wrong(
    command: str, variables: dict[str, str], named: str, tmp_path: Path
) -> None:
    done = started(command, tmp_path, variables)
    assert (done.returncode, done.stderr.count("\n")) in ((1, 1), (2, 1)), done.stderr
    assert done.stderr.startswith("ttmark: ")
    assert named in done.stderr
    assert SECRET not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"file", "torch.py", "__pycache__"}


def test_the_default_state_folder_is_made_by_what_makes_keys(tmp_path: Path) -> None:
    made = started("tokens create", tmp_path, {})
    assert (made.returncode, made.stderr) == (0, "")
    assert {path.name for path in (tmp_path / ".ttmark").iterdir()} >= {"keys.db"}
    assert (tmp_path / ".ttmark").stat().st_mode & 0o777 == 0o700
    assert started("tokens list", tmp_path, {}).returncode == 0
