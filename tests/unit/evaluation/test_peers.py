"""`peers`: what it says of each system agrees with slow, obvious ways to the same figures."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.experiment_cells import Cell, SamplingSetting
from ttmark.evaluation.intervals import Sample
from ttmark.evaluation.peers.detectors import Document, Ours
from ttmark.evaluation.peers.measure import FPRS, power_of
from ttmark.evaluation.report.result import Result
from ttmark.shared.watermark import detect_direct

SETTING = SamplingSetting(50, 0.95, 1.0)


class Fixed:
    """A detector that says what it is told."""

    def __init__(self, log10_p: list[float]) -> None:
        self._log10_p = np.array(log10_p)

    def log10_p(self, documents: list[Document], *, edited: bool) -> Sample:
        return self._log10_p


def documents(count: int, tokens: int) -> list[Document]:
    rng = np.random.default_rng(1)
    return [(rng.bytes(16), rng.integers(0, 500, tokens)) for _ in range(count)]


def test_rates_are_counts_and_copies_of_a_text_are_one_observation() -> None:
    power = power_of(Fixed([-1.0, -2.5, -4.0, -6.0]), documents(4, 3), 1, edited=False)
    assert [rate.estimate for rate in power.tpr] == [0.75, 0.5, 0.25]
    assert power.median_log10_p.estimate == -3.25
    copies = power_of(Fixed([-9.0, -9.0, 0.0] * 8), documents(24, 3), 3, edited=True)
    rate = copies.tpr[FPRS.index(1e-2)]
    assert (rate.estimate, rate.low, rate.high) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    all_found = power_of(Fixed([-9.0] * 24), documents(24, 3), 3, edited=True).tpr[0]
    assert all_found.low == pytest.approx(0.025 ** (1 / 8))


def test_our_texts_are_read_directly_and_edited_ones_by_the_question_of_the_service() -> None:
    cell = Cell("gumbel", 2, SETTING, 40)
    texts = documents(2, 40)
    whole, changed = (Ours(cell).log10_p(texts, edited=edited) for edited in (False, True))
    assert whole.tolist() == [detect_direct(cell.watermark(), key, tokens).log10_p for key, tokens in texts]
    assert (changed <= 0.0).all()
    assert changed.tolist() != whole.tolist()


@pytest.mark.slow
def test_the_command_compares_systems_on_the_demo_model(tmp_path: Path) -> None:
    sizes = "--texts 3 --length 50 --completions 2 --prompt-count 2"
    few = "--loss-texts 2 --scheme gumbel --block-size 2"
    options = ["--model", "demo", "--setting", "default", "--threads", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(eval_app(), ["peers", *sizes.split(), *few.split(), *options])
    assert result.exit_code == 0, result.output
    assert "vLLM Gumbel is left out" in result.output
    *rows, unmarked = Result.load(tmp_path / "peers.json").data
    assert [row["system"] for row in rows] == [
        "transformers SynthID-Text",
        "transformers KGW",
        "ours: Gumbel r=2",
    ]
    for row in rows:
        assert row["tokens"] == [25, 50]
        whole, edited = row["power"][-1], row["edits"][1]
        assert whole["tpr"][0]["estimate"] >= edited["tpr"][0]["estimate"]
    assert unmarked["distinct"]["estimate"] == 1.0
    again = CliRunner().invoke(eval_app(), ["peers", "--system", "kgw", *options])
    assert again.exit_code == 1
    assert "unknown: kgw" in again.output
