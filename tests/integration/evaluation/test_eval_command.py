"""`ttmark eval` on a real engine, from the command line to the files."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from ttmark.evaluation.cli.app import eval_app

pytestmark = pytest.mark.long

Eval = Callable[..., Result]


@pytest.fixture
def evaluate(model: Path, prompts: Path, tmp_path: Path) -> Eval:
    def call(*arguments: str) -> Result:
        shared = ["--model", str(model), "--prompts", str(prompts), "--threads", "1"]
        return CliRunner().invoke(eval_app(), [*arguments, *shared, "--out", str(tmp_path / "run")])

    return call


def test_experiments_run_and_become_one_document_and_the_manifest_names_the_model_by_folder_and_hash(
    evaluate: Eval, model: Path, human: Path, tmp_path: Path
) -> None:
    small = ("--scheme", "synthid", "--setting", "strict")
    edited = ("--length", "30", "--length", "40", "--texts", "2")
    documents = ("--documents", "2", "--document-tokens", "500", "--human", str(human))
    calls = (
        ("direct", "--setting", "strict", "--length", "16", "--texts", "2"),
        ("strict", *small, "--length", "20", "--texts", "2"),
        ("strict", *small, "--length", "10", "--texts", "2", "--label", "ten-tokens"),
        ("blocks", *small, "--length", "10", "--length", "20", "--texts", "2"),
        ("quality", *small, "--length", "16", "--texts", "2"),
        ("edits", *small, *edited, "--edit", "rewrite", "--human", str(human)),
        ("beta", *small, *edited, "--edit", "delete", "--human", str(human)),
        ("localized", *small, "--block-size", "2", *documents),
    )
    for call in calls:
        result = evaluate(*call)
        assert result.exit_code == 0, result.output
    target = tmp_path / "results"
    result = CliRunner().invoke(eval_app(), ["report", str(target), "--out", str(tmp_path / "run")])
    assert "README.md, blocks.md, strict.md, edits.md, localized.md, quality.md" in result.output
    document = "".join(path.read_text() for path in target.glob("*.md"))
    for title in ("Strict sampling", "rewrite, 30 tokens", "(edits.json) alone: 1 table."):
        assert title in document
    assert (target / "strict.md").read_text().count("Made by") == 2
    names = {path.stem for path in (tmp_path / "run" / "texts").glob("*.jsonl")}
    assert {name.rpartition("-n")[2] for name in names} == {"10", "16", "20", "40", "400"}
    assert {"plain-k20-p0.8-t0.7-n16", "synthid-r2-k20-p0.8-t0.7-n16"} <= names
    manifest = orjson.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert (manifest["model"], len(manifest["model_sha256"])) == (model.name, 64)
    assert str(tmp_path) not in str(manifest)
