"""What the service finds, beside the likelihood ratio of each text."""

import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ttmark.evaluation.cells import SETTINGS, Setting
from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.experiments.frontier import NOW
from ttmark.evaluation.quality import until_end
from ttmark.evaluation.report.result import Result
from ttmark.evaluation.run import CompletionFile
from ttmark.evaluation.simulated import SimulatedSource
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood

LENGTH = 60


def test_rates_are_those_of_the_texts_read_one_by_one(tmp_path: Path) -> None:
    options = ["--model", "simulated", "--setting", "default", "--texts", "12", "--length", str(LENGTH)]
    outcome = CliRunner().invoke(eval_app(), ["found", *options, "--out", str(tmp_path)])
    assert outcome.exit_code == 0, outcome.output
    row = Result.load(tmp_path / "found.json").data[0]
    assert row["change"] == "as written"

    cell, source = NOW.cell(SETTINGS[Setting.DEFAULT], LENGTH), SimulatedSource()
    texts = CompletionFile(tmp_path / "texts" / f"{cell.name}.jsonl").read()
    documents = []
    for index, text in texts.items():
        if len(until_end(text.token_ids, source.end_tokens)) == LENGTH:
            read = source.tokenizer.encode(source.tokenizer.decode(text.token_ids))
            documents.append((cell.key(0, index), read))
    assert row["texts"] == len(documents)
    log10_p = [
        detect_likelihood(cell.watermark(), [key], read, sharp="always").log10_p for key, read in documents
    ]
    assert row["median_log10_p"] == pytest.approx(np.median(log10_p))
    for rate in row["rates"]:
        hits = [one + math.log10(rate["keys"]) <= math.log10(rate["fpr"]) for one in log10_p]
        assert rate["share"]["estimate"] == pytest.approx(np.mean(hits))


def test_edits_and_texts_around_it_weaken_a_mark(tmp_path: Path) -> None:
    options = ["--model", "simulated", "--setting", "default", "--texts", "12", "--length", "150"]
    outcome = CliRunner().invoke(eval_app(), ["found", *options, "--out", str(tmp_path)])
    assert outcome.exit_code == 0, outcome.output
    whole, *changed = (row["median_log10_p"] for row in Result.load(tmp_path / "found.json").data)
    assert len(changed) == 4
    assert whole < min(changed)
    assert changed[0] < changed[1] < changed[2]
