"""The document of a run."""

from pathlib import Path

import pytest

from ttmark.evaluation.intervals import Interval
from ttmark.evaluation.manifest import describe
from ttmark.evaluation.report.document import write_document
from ttmark.evaluation.report.figure import Figure, Panel, Series
from ttmark.evaluation.report.result import Result, Table

LINE = Series("r = 2", (1.0, 2.0), (Interval(1.0, 0.5, 2.0), Interval(2.0, 1.5, 2.5)))
FIGURE = Figure("plot", "A plot", (Panel("p", "x", "y", (LINE,)),))


def test_the_document_holds_findings_tables_and_commands(tmp_path: Path) -> None:
    run, target = tmp_path / "run", tmp_path / "results"
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "a"}\n')
    describe("owner/name", "owner/name", prompts, 64, 0, {}).save(run)
    Result("strict", "ttmark eval strict", (Table("T", ("a",), (("1",),)),), (), ()).save(run)
    labelled = Result("strict", "ttmark eval strict --label b", (), (FIGURE,), ()).labelled("b")
    labelled.save(run)
    target.mkdir()
    (target / "findings.md").write_text("What we found.\n")
    assert write_document(run, target) == ["strict", "strict-b"]
    text = (target / "README.md").read_text()
    assert "What we found." in text
    assert "Made by `ttmark eval strict`." in text
    assert "`owner/name`" in text
    assert str(tmp_path) not in text
    assert text.count("## Strict sampling") == 1
    assert "Made by `ttmark eval strict --label b`." in text
    for name in ("strict.json", "strict-b.json", "plot-b.png"):
        assert (target / name).is_file()


def test_a_run_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no result"):
        write_document(tmp_path, tmp_path / "results")
