"""`scrubbing` and `oracle` on the simulated model."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from ttmark.evaluation.adversaries.rewriting import Rewriting, RewritingCell, rewriting
from ttmark.evaluation.cells import SETTINGS, Cell, Setting
from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.report.result import Result
from ttmark.evaluation.run import Run
from ttmark.evaluation.simulated import SimulatedSource
from ttmark.services.text_readings import text_readings

SETTING = SETTINGS[Setting.DEFAULT]


def measured(folder: Path, name: str, *options: str) -> tuple[dict[str, Any], ...]:
    shared = ["--model", "simulated", "--setting", "default", "--out", str(folder), "--defaults-only"]
    outcome = CliRunner().invoke(eval_app(text_readings()), [name, *options, *shared])
    assert outcome.exit_code == 0, outcome.output
    return Result.load(folder / f"{name}.json").data


def open_lab(folder: Path) -> Lab:
    source = SimulatedSource()
    return Lab(Run(folder, source, 0, Progress(disable=True)), source, Console(quiet=True))


def test_scrubbing_measures_edits_of_every_kind_and_lies(tmp_path: Path) -> None:
    rows = measured(tmp_path, "scrubbing", "--texts", "2", "--reworded", "1", "--length", "40")
    edits, lies = [row for row in rows if "family" in row], [row for row in rows if "made" in row]
    assert {row["family"] for row in edits} == {"none", "invisible", "visible", "words", "sentences"}
    as_written, *_ = edits
    assert as_written["kept"]["estimate"] == 1.0
    assert as_written["chrf"] == 100.0
    zero_width = [row for row in edits if row["edit"] == "zero-width spaces"]
    assert {row["kept"]["estimate"] for row in zero_width} == {1.0}  # as a reader sees them
    deleted = {row["share"]: row["kept"]["estimate"] for row in edits if row["edit"] == "any words deleted"}
    assert deleted == pytest.approx({0.05: 0.95, 0.1: 0.9, 0.2: 0.8, 0.4: 0.6})
    assert [row["changes"] for row in lies] == [0, 1, 2, 4, 8]
    assert [row["made"] for row in lies] == [0, 1, 2, 4, 8]


def test_questions_help_who_asks_them(tmp_path: Path) -> None:
    options = ("--texts", "2", "--length", "100", "--budget", "0", "--budget", "40")
    rows = measured(tmp_path, "oracle", *options)
    success = {(row["goal"], row["tells"], row["budget"]): row["success"][-1]["estimate"] for row in rows}
    assert len(success) == 16
    assert success["removal", "p-value and heat", 40] == success["removal", "verdict", 40] == 1.0
    assert success["forgery", "p-value and heat", 40] == 1.0
    assert success["forgery", "verdict", 40] == success["forgery", "nothing", 40] == 0.0


def test_sentences_are_reworded_each_by_an_answer_of_its_own(tmp_path: Path) -> None:
    lab, cell = open_lab(tmp_path), Cell("gumbel", 2, SETTING, 20)
    texts = ["w1 w2 w3. w4 w5 w6! Yes. w7 w8 w9.", "w1 w2 w3."]
    found = rewriting(lab, cell, texts)
    assert ["".join(parts) for parts in found.sentences] == texts
    assert found.reworded[0][2] == " Yes."  # a fragment stays
    assert all(part.startswith(" w") for part in found.reworded[0][1::2])
    assert len((tmp_path / "texts" / f"reworded-n48-{cell.name}.jsonl").read_text().split("\n")) == 5


def test_a_share_of_the_sentences_is_taken_from_the_answers() -> None:
    found = Rewriting([["A a.", " B b.", " C c.", " D d."]], [["a!", " b!", " c!", " d!"]])
    assert found.text(0, 0.0, seed=1) == "A a. B b. C c. D d."
    assert found.text(0, 1.0, seed=1) == "a! b! c! d!"
    assert found.text(0, 0.5, seed=1).count("!") == 2


def test_an_answer_continues_its_own_question() -> None:
    cell = RewritingCell(None, 1, SETTING, 48, of="x", asked=((1, 2), (3,)))
    assert [cell.prompt_ids(index, ((9,),)) for index in range(2)] == [(1, 2), (3,)]
