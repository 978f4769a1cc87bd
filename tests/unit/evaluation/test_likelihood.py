"""Promises of the likelihood ratio, as `ttmark eval core` measures them."""

import pytest
from typer.testing import CliRunner

from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.core import false_positives_of_scores


def test_wrong_keys_find_texts_at_most_as_often_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(false_positives_of_scores, "LENGTHS", (80,))
    monkeypatch.setattr(false_positives_of_scores, "SETS", 4)
    options = ["--scheme", "gumbel", "--block-size", "2", "--trials", "20000"]
    result = CliRunner().invoke(eval_app(), ["core", "fpr-likelihood", *options])
    assert result.exit_code == 0, result.output
    row = next(line for line in result.output.splitlines() if line.startswith("| gumbel"))
    assert "above" not in row
    shares = [float(share) for share in row.split("|")[9].split(",")]
    assert 0.5 < shares[0] < 1.2
