"""The command that a result names makes it again: typed, it gives the same options."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from ttmark.evaluation.cli.app import LabOptions
from ttmark.evaluation.cli.commands_of_dataclasses import command_of, new_app
from ttmark.evaluation.command_line import command_line, command_words
from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import Setting
from ttmark.evaluation.experiments.direct import Blocks, Direct
from ttmark.evaluation.experiments.registry import EXPERIMENTS, Everything
from ttmark.evaluation.experiments.strict import Strict
from ttmark.evaluation.report.result import Table
from ttmark.evaluation.run_folder import Run
from ttmark.evaluation.simulated import SimulatedSource

SHARED = LabOptions(model="simulated", dtype="bfloat16", threads=1, prompts=Path("some prompts.jsonl"))
PLANS = [
    *(experiment for quick in (False, True) for experiment, _ in Everything(quick=quick).experiments()),
    *(kind() for kind in EXPERIMENTS),
    Blocks(lengths=(2, 3), texts=(4, 5), block_sizes=(1,)),
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


class Counted(Strict):
    """An experiment that counts how often it is measured."""

    measured = 0

    def measure(self, lab: Lab) -> None:
        Counted.measured += 1
        lab.finish(self.name, [Table("", ("a",), (("1",),))], [])


def test_all_goes_on_where_it_was_and_measures_anew_what_was_made_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counted, "measured", 0)
    monkeypatch.setattr(
        Everything, "experiments", lambda _: iter([(Counted(texts=3), None), (Counted(), "more")])
    )
    source = SimulatedSource()
    lab = Lab(Run(tmp_path, source, 0, Progress()), source, Console(quiet=True), options=SHARED)
    everything = Everything(setting=Setting.CHAT)
    for expected in (2, 2):
        everything.measure(lab)
        assert Counted.measured == expected
    everything.measure(replace(lab, options=replace(SHARED, dtype="float32")))
    assert Counted.measured == 4
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["strict-more.json", "strict.json"]


@pytest.mark.parametrize("where", [["--json", "a file.json"], ["--json=a file.json"], []])
def test_a_command_as_it_was_typed_names_no_file_for_the_figures(
    monkeypatch: pytest.MonkeyPatch, where: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["/some/bin/ttmark", "bench", *where, "core", "--seed", "1"])
    assert command_line(without="--json") == "ttmark bench core --seed 1"
