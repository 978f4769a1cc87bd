"""Real processes keep the promise: one line that begins `ttmark:`, no traceback, no secret, before torch."""

from pathlib import Path

import pytest

from tests.harness.forked_commands import ForkedCommands

SECRET = "hunter2"
# Each command, and what a process alone sees; `test_wrong_values.py` has every value of every setting.
Case = tuple[str, dict[str, str], str]
REFUSED: list[Case] = [
    ("serve detect", {"TTMARK_DETECT_PORT": "http"}, "TTMARK_DETECT_PORT: "),
    ("serve detect", {"TTMARK_HOST": "nan", "TTMARK_LEDGER_FILE": "none"}, "TTMARK_HOST"),
    ("serve gen", {"TTMARK_KEK": SECRET}, "TTMARK_KEK: "),
    ("serve canary", {"TTMARK_TOKEN": SECRET}, "TTMARK_TOKEN: "),
    ("up", {"TTMARK_CORS_ORIGINS": "app.example.org"}, "TTMARK_CORS_ORIGINS: "),
    ("up", {"TTMARK_AUDIT_FOLDER": "file"}, "TTMARK_AUDIT_FOLDER: "),
    ("up --state file", {}, "'--state'"),
    ("keys list", {"TTMARK_STORE_URL_FILE": f"redis://:{SECRET}@host"}, "TTMARK_STORE_URL_FILE: "),
    ("keys list", {}, "mkdir -p .ttmark"),
    ("tokens list", {"TTMARK_LEDGER_FILE": "typo/ledger.json"}, "mkdir -p typo"),
    ("audit export -", {"TTMARK_AUDIT_KEEP_DAYS": "1e400"}, "TTMARK_AUDIT_KEEP_DAYS: "),
    ("detect file", {"TTMARK_DETECT_URL": "localhost"}, "TTMARK_DETECT_URL"),
    ("generate a", {"TTMARK_GEN_URL": f"http://:{SECRET}@["}, "TTMARK_GEN_URL"),
    ("generate a", {"TTMARK_TOKEN": f"{SECRET}\u00e9"}, "TTMARK_TOKEN"),
]
OURS = {"TTMARK_KEK": "01" * 32, "TTMARK_TOKEN": "ttm_a_b"}


@pytest.mark.parametrize(("command", "variables", "reason"), REFUSED)
def test_a_process_ends_with_one_line_that_says_what_is_wrong(
    commands: ForkedCommands, tmp_path: Path, command: str, variables: dict[str, str], reason: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("a text")
    (tmp_path / "torch.py").write_text("raise RuntimeError('torch is imported')")
    asked = OURS | variables | {"PYTHONPATH": str(tmp_path)}
    ended = commands.run(*command.split(), folder=folder, **asked)
    said = ended.output + ended.errors
    assert (ended.code, said.count("\n")) in ((1, 1), (2, 1)), said
    assert ended.errors.startswith("ttmark: ")
    assert reason in said
    assert SECRET not in said
    assert [path.name for path in folder.iterdir()] == ["file"]


@pytest.mark.long  # torch takes longer to import than all else here
def test_a_command_that_needs_torch_says_what_is_wrong_too(commands: ForkedCommands, tmp_path: Path) -> None:
    ended = commands.run("eval", "results", "--no-such", folder=tmp_path)
    assert (ended.code, ended.errors.count("\n")) == (2, 1), ended.errors
    assert ended.errors.startswith("ttmark: ")
    assert "--no-such" in ended.errors


def test_the_default_state_folder_is_made_by_what_makes_keys(
    commands: ForkedCommands, tmp_path: Path
) -> None:
    made = commands.run("tokens", "create", folder=tmp_path, **OURS)
    assert (made.code, made.errors) == (0, "")
    state = tmp_path / ".ttmark"
    assert {path.name for path in state.iterdir()} >= {"keys.db"}
    assert state.stat().st_mode & 0o777 == 0o700
