"""The pages of a run."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ttmark.evaluation.experiments.registry import EXPERIMENTS
from ttmark.evaluation.intervals import Interval
from ttmark.evaluation.report.pages import PAGE_OF, SECTIONS, SHARED, pages, write_pages
from ttmark.evaluation.report.plot_data import Figure, Panel, Series
from ttmark.evaluation.report.result import Result, Table
from ttmark.evaluation.run_manifest import Manifest, ManifestMismatch, describe

LINE = Series("r = 2", (1.0, 2.0), (Interval(1.0, 0.5, 2.0), Interval(2.0, 1.5, 2.5)))
FIGURE = Figure("plot", "A plot", (Panel("p", "x", "y", (LINE,)),))
TABLE = Table("T", ("a",), (("1",),))

NewRun = Callable[[str, str], Path]


@pytest.fixture
def new_run(tmp_path: Path) -> NewRun:
    """A folder of a run on a prompt."""

    def make(name: str, prompt: str) -> Path:
        prompts = tmp_path / f"{name}.jsonl"
        prompts.write_text(f'{{"prompt": "{prompt}"}}\n')
        describe("owner/name", "owner/name", prompts, 64, 0, {}).save(tmp_path / name)
        return tmp_path / name

    return make


def save(run: Path, experiment: str, figures: tuple[Figure, ...] = (), label: str = "") -> Result:
    result = Result(experiment, f"ttmark eval {experiment} {label}", (TABLE,), figures, ()).made_here()
    result = result.labelled(label) if label else result
    result.save(run)
    return result


def test_a_page_holds_the_results_of_its_experiments_with_plots(new_run: NewRun, tmp_path: Path) -> None:
    run, target = new_run("run", "a"), tmp_path / "pages"
    results = [
        save(run, "blocks", (FIGURE,)),
        save(run, "blocks", (FIGURE,), label="b"),
        save(run, "direct"),
        save(run, "strict"),
    ]
    assert write_pages(run, target) == ["README.md", "blocks.md", "strict.md"]
    blocks, strict = ((target / name).read_text() for name in ("blocks.md", "strict.md"))
    bare = [replace(result, machine=None).markdown() for result in results]  # the list names the machine
    positions = [blocks.index(text) for text in bare[:3]]
    assert positions == sorted(positions)
    assert strict.endswith(bare[3])
    assert blocks.startswith("# Blocks of one, two and three tokens\n")
    assert "\n## The gain of pairs by sampling setting\n" in blocks
    assert blocks.count("\n## Run `b`\n") == 1
    assert strict.startswith("# Strict sampling\n")
    assert {path.name for path in target.iterdir()} == {
        *("README.md", "blocks.md", "strict.md", "manifest.json", "plot.png", "plot-b.png"),
        *("blocks.json", "blocks-b.json", "direct.json", "strict.json"),
    }


def test_the_list_names_the_model_the_machine_and_every_page(new_run: NewRun, tmp_path: Path) -> None:
    run, target = new_run("run", "a"), tmp_path / "pages"
    save(run, "edits")
    save(run, "beta")
    write_pages(run, target)
    text = (target / "README.md").read_text()
    assert "`owner/name`" in text
    assert " cores, " in text
    assert "[Edits](edits.md)" in text
    assert "beta.md" not in text
    assert str(tmp_path) not in "".join(path.read_text() for path in target.glob("*.md"))


def test_the_pages_follow_from_the_files_beside_them(new_run: NewRun, tmp_path: Path) -> None:
    run, target = new_run("run", "a"), tmp_path / "pages"
    save(run, "strict")
    write_pages(run, target)
    assert pages(target) == {path.name: path.read_text() for path in target.glob("*.md")}
    (target / "strict.json").write_text((target / "strict.json").read_text().replace('"1"', '"2"'))
    assert "| 2 |" in pages(target)["strict.md"]


def test_a_second_run_of_the_same_model_and_prompts_adds_its_results(new_run: NewRun, tmp_path: Path) -> None:
    first, second, target = new_run("first", "a"), new_run("second", "a"), tmp_path / "pages"
    save(first, "strict")
    save(second, "edits")
    write_pages(first, target)
    assert write_pages(second, target) == ["README.md", "strict.md", "edits.md"]


def test_a_page_of_its_own_title_has_a_section_for_each_experiment(new_run: NewRun, tmp_path: Path) -> None:
    run, target = new_run("run", "a"), tmp_path / "pages"
    save(run, "stealing")
    assert write_pages(run, target) == ["README.md", "adversaries.md"]
    text = (target / "adversaries.md").read_text()
    assert text.startswith("# Adversaries\n")
    assert "\n## Stealing a key\n" in text


def test_a_result_that_says_no_machine_gets_the_runs(new_run: NewRun, tmp_path: Path) -> None:
    run, target = new_run("run", "a"), tmp_path / "pages"
    Result("strict", "ttmark eval strict", (TABLE,), (), ({"z": 1.5},)).save(run)
    write_pages(run, target)
    old, new = (Result.load(folder / "strict.json") for folder in (run, target))
    assert old.machine is None
    assert new == replace(old, machine=Manifest.load(run).machine)
    assert new.markdown().endswith(" GiB.\n")


def test_a_run_on_other_prompts_or_without_results_is_refused(new_run: NewRun, tmp_path: Path) -> None:
    first, other, target = new_run("first", "a"), new_run("other", "b"), tmp_path / "pages"
    save(first, "strict")
    save(other, "strict")
    write_pages(first, target)
    with pytest.raises(ManifestMismatch, match="prompts_sha256"):
        write_pages(other, target)
    with pytest.raises(ValueError, match="no result"):
        write_pages(new_run("run", "a"), tmp_path / "pages")


def test_every_experiment_has_a_section_and_those_that_share_a_page_have_one_to_share() -> None:
    assert {kind.name for kind in EXPERIMENTS} <= SECTIONS.keys()
    assert set(PAGE_OF.values()) <= {*SECTIONS, *SHARED}
    assert not PAGE_OF.keys() & set(PAGE_OF.values())
    assert not SHARED.keys() & SECTIONS.keys()
    assert all(about and "\n" not in about for _, about in SECTIONS.values())
