"""`ttmark eval` on a real engine, from the command line to the files."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from ttmark.evaluation.cli.app import eval_app
from ttmark.services.evaluated_detection import Service

pytestmark = pytest.mark.long

Eval = Callable[..., Result]


@pytest.fixture
def evaluate(model: Path, prompts: Path, tmp_path: Path) -> Eval:
    def call(*arguments: str) -> Result:
        shared = ["--model", str(model), "--prompts", str(prompts), "--threads", "1"]
        return CliRunner().invoke(eval_app(Service), [*arguments, *shared, "--out", str(tmp_path / "run")])

    return call


def test_an_experiment_runs_and_the_manifest_names_the_model_by_folder_and_hash(
    evaluate: Eval, model: Path, tmp_path: Path
) -> None:
    small = ("--arm", "synthid:2", "--setting", "strict", "--texts", "2")
    result = evaluate("results", "--length", "10", "--length", "20", *small)
    assert result.exit_code == 0, result.output
    run = tmp_path / "run"
    assert "Answers of 10 tokens" in (run / "results.md").read_text()
    assert {path.stem for path in (run / "texts").glob("*.jsonl")} == {"synthid-2-prose-k20-p0.8-t0.7-n20-k1"}
    manifest = orjson.loads((run / "manifest.json").read_bytes())
    assert (manifest["model"], len(manifest["model_sha256"])) == (model.name, 64)
    assert str(tmp_path) not in str(manifest)
