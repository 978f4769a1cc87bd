"""Sentences that the model says in other words, on the simulated model."""

from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from ttmark.evaluation.adversaries.rewriting import Rewriting, RewritingCell, rewriting
from ttmark.evaluation.cells import SETTINGS, Cell, Setting
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.run import Run
from ttmark.evaluation.simulated import SimulatedSource

SETTING = SETTINGS[Setting.DEFAULT]


def open_lab(folder: Path) -> Lab:
    source = SimulatedSource()
    return Lab(Run(folder, source, 0, Progress(disable=True)), source, Console(quiet=True))


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
