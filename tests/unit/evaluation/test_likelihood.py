"""Promises of the likelihood ratio, as `ttmark eval core` measures them."""

import pytest
from typer.testing import CliRunner

from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.core import likelihood


def test_wrong_keys_find_texts_at_most_as_often_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likelihood, "LENGTHS", (80,))
    monkeypatch.setattr(likelihood, "SETS", 4)
    options = ["--scheme", "gumbel", "--block-size", "2", "--trials", "20000"]
    result = CliRunner().invoke(eval_app(), ["core", "fpr-likelihood", *options])
    assert result.exit_code == 0, result.output
    row = next(line for line in result.output.splitlines() if line.startswith("| gumbel"))
    assert "above" not in row
    shares = [float(share) for share in row.split("|")[9].split(",")]
    assert 0.5 < shares[0] < 1.2


def test_intervals_for_the_share_mostly_hold_it() -> None:
    result = CliRunner().invoke(eval_app(), ["core", "coverage", "--documents", "120"])
    assert result.exit_code == 0, result.output
    rows = [line.split("|") for line in result.output.splitlines() if "%" in line]
    assert [row[1].strip() for row in rows] == list(likelihood.KINDS)
    held = sum(int(row[2]) * float(row[3].split("%")[0]) / 100 for row in rows)
    assert held / sum(int(row[2]) for row in rows) > 0.9
