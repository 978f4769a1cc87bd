"""The command that a result names makes it again: typed, it gives the same options."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ttmark.evaluation.cli.app import EXPERIMENTS, LabOptions
from ttmark.evaluation.cli.app_and_errors import new_app
from ttmark.evaluation.command_line import command_line, command_words
from ttmark.evaluation.experiment_cells import Setting
from ttmark.evaluation.experiments.direct import Direct
from ttmark.shared.commands_of_dataclasses import command_of

SHARED = LabOptions(model="simulated", dtype="bfloat16", threads=1, prompts=Path("some prompts.jsonl"))
PLANS = [
    *(kind() for kind in EXPERIMENTS),
    Direct(lengths=(2, 3), texts=4, block_sizes=(1,), settings=(Setting.CHAT,)),
]


def typed(words: str, kind: type) -> list[Any]:
    """The options that the command line makes of a line."""
    given: list[Any] = []
    app = new_app("")
    app.command(kind.name)(command_of(lambda *parts: given.extend(parts), kind, LabOptions))  # type: ignore[attr-defined]
    app.callback()(lambda: None)
    result = CliRunner().invoke(app, shlex.split(words)[2:])
    assert result.exit_code == 0, result.output
    return given


@pytest.mark.parametrize("experiment", PLANS, ids=lambda one: one.name)
def test_what_a_result_names_gives_its_options_again(experiment: Any) -> None:
    assert typed(command_words(experiment.name, experiment, SHARED), type(experiment)) == [experiment, SHARED]


def test_defaults_and_the_folder_are_not_said() -> None:
    assert command_words("direct", Direct(), LabOptions(out=Path("elsewhere"))) == "ttmark eval direct"


@pytest.mark.parametrize("where", [["--json", "a file.json"], ["--json=a file.json"], []])
def test_a_command_as_it_was_typed_names_no_file_for_the_figures(
    monkeypatch: pytest.MonkeyPatch, where: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["/some/bin/ttmark", "bench", *where, "core", "--seed", "1"])
    assert command_line(without="--json") == "ttmark bench core --seed 1"
