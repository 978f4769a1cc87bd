"""What cannot be taken back is asked about first."""

from pathlib import Path

import pytest
from typer.testing import Result

from tests.harness.command_line import invoke
from ttmark.services.cli import terminal

DANGEROUS = [["keys", "retire", "k", "1"], ["keys", "disable", "k", "1"], ["tokens", "revoke", "abc"]]


@pytest.fixture(params=DANGEROUS, ids=" ".join)
def command(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A dangerous command where no key opens the store: going on shows by that error."""
    monkeypatch.chdir(tmp_path)
    return request.param  # type: ignore[no-any-return]


def went_on(result: Result) -> bool:
    return "key-encryption key" in result.stderr


def test_a_program_has_to_say_yes(command: list[str]) -> None:
    refused = invoke(*command, input="y\n")
    assert (refused.exit_code, went_on(refused)) == (2, False)
    assert "--yes" in refused.stderr
    assert went_on(invoke(*command, "--yes"))


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_somebody_at_a_terminal_is_asked(command, monkeypatch, answer, agreed):
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    result = invoke(*command, input=answer)
    assert "Go on?" in result.stderr
    assert result.exit_code == 1
    assert went_on(result) == agreed
