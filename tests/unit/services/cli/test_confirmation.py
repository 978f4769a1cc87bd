"""What cannot be taken back is asked about first, if there is such a thing."""

from pathlib import Path

import pytest

from tests.harness.command_line import invoke
from ttmark.services.cli import terminal

DANGEROUS = [["keys", "retire", "k", "2"], ["keys", "disable", "k", "1"], ["tokens", "revoke"]]


@pytest.fixture(params=DANGEROUS, ids=" ".join)
def command(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TTMARK_STORE_URL", "sqlite:///keys.db")
    monkeypatch.setenv("TTMARK_KEK", "01" * 32)
    assert invoke("keys", "create", "k", "--tokenizer", "demo").exit_code == 0
    assert invoke("keys", "rotate", "k").exit_code == 0
    token = invoke("tokens", "create").stdout.split("_")[1]
    return [*request.param, token] if request.param[0] == "tokens" else request.param


def test_a_program_has_to_say_yes(command: list[str]) -> None:
    refused = invoke(*command, input="y\n")
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert invoke(*command, "--yes").exit_code == 0


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_somebody_at_a_terminal_is_asked(command, monkeypatch, answer, agreed):
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    result = invoke(*command, input=answer)
    assert "Go on?" in result.stderr
    assert result.exit_code == (0 if agreed else 1)


def test_nobody_is_asked_about_what_is_not_there(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    for missing in ([*command[:-1], "9"], ["keys", "disable", "nope", "1"]):
        result = invoke(*missing, input="y\n")
        assert (result.exit_code, "Go on?" in result.stderr) == (1, False)
        assert result.stderr.startswith(("ttmark: key k has no version 9", "ttmark: there is no "))
