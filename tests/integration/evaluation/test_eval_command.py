"""`ttmark eval` on a real engine, from the command line to the files."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.report.result import Result as Experiment

Eval = Callable[..., Result]


@pytest.fixture
def evaluate(model: Path, prompts: Path, tmp_path: Path) -> Eval:
    def call(*arguments: str) -> Result:
        shared = ["--model", str(model), "--prompts", str(prompts), "--threads", "1"]
        return CliRunner().invoke(eval_app(), [*arguments, *shared, "--out", str(tmp_path / "run")])

    return call


def test_direct_detection_is_measured_and_a_second_call_generates_nothing(
    evaluate: Eval, tmp_path: Path
) -> None:
    arguments = ("direct", "--setting", "strict", "--length", "16", "--texts", "3")
    first = evaluate(*arguments)
    assert first.exit_code == 0, first.output
    assert "+ TTMark 2-token" in first.output
    texts = sorted((tmp_path / "run" / "texts").glob("*.jsonl"))
    assert [path.name for path in texts] == [
        "plain-k20-p0.8-t0.7-n16.jsonl",
        "synthid-r1-k20-p0.8-t0.7-n16.jsonl",
        "synthid-r2-k20-p0.8-t0.7-n16.jsonl",
    ]
    before = [path.read_bytes() for path in texts]
    rows = Experiment.load(tmp_path / "run" / "direct.json").data
    assert evaluate(*arguments).exit_code == 0
    assert [path.read_bytes() for path in texts] == before
    assert Experiment.load(tmp_path / "run" / "direct.json").data == rows


def test_strict_quality_edits_and_spans_run_and_become_one_document(
    evaluate: Eval, human: Path, tmp_path: Path
) -> None:
    small = ("--scheme", "synthid", "--setting", "strict")
    edited = ("--length", "30", "--length", "40", "--texts", "2")
    documents = ("--documents", "2", "--document-tokens", "500", "--human", str(human))
    calls = (
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
    lengths = {path.stem.rpartition("-n")[2] for path in (tmp_path / "run" / "texts").glob("*.jsonl")}
    assert lengths == {"10", "16", "20", "40", "400"}


def test_a_folder_of_another_seed_is_refused_in_one_line(evaluate: Eval) -> None:
    arguments = ("direct", "--setting", "strict", "--length", "8", "--texts", "2")
    evaluate(*arguments)
    result = evaluate(*arguments, "--seed", "1")
    assert result.exit_code == 1
    assert "choose another folder" in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_the_manifest_names_the_model_by_its_folder_and_hash(
    evaluate: Eval, model: Path, tmp_path: Path
) -> None:
    evaluate("direct", "--setting", "strict", "--length", "8", "--texts", "2")
    manifest = orjson.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert manifest["model"] == model.name
    assert len(manifest["model_sha256"]) == 64
    assert str(tmp_path) not in str(manifest)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("direct", "--scheme", "rot13", "--setting", "strict"), "rot13"),
        (("direct", "--label", "Two words"), "lower-case"),
        (("edits", "--edit", "burn", "--setting", "strict", "--texts", "2", "--length", "8"), "burn"),
    ],
)
def test_an_unknown_name_is_one_line(
    evaluate: Eval, human: Path, arguments: tuple[str, ...], message: str
) -> None:
    extra = ("--human", str(human)) if arguments[0] == "edits" else ("--length", "8", "--texts", "2")
    result = evaluate(*arguments, *extra)
    assert result.exit_code == 1
    assert message in result.output.splitlines()[-1]
