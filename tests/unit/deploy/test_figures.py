"""The comparison of the documents' numbers with the results files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.figures.__main__ import check
from tests.harness.figures.result_pages import stale_pictures
from tests.harness.figures.values import BadFigure, Measured, value_at
from tests.harness.reference.result_plots import pictures
from ttmark.evaluation.report.result import Result, Table
from ttmark.evaluation.run_manifest import machine

FOUND = {"estimate": 0.9512, "low": 0.9101, "high": 0.9732}
ROWS = (
    {"scheme": "gumbel", "block_size": 1, "tpr": [0.5, 0.25]},
    {"scheme": "gumbel", "block_size": 2, "tpr": [FOUND, 0.5]},
)
PAGE = """# Title

Of texts 95 % [91,
97] are found, twice as many (0.5 times at 0.25) as at 1e-3. See `0.7` and

```console
run --p 0.95
```

| what | share |
|---|---|
| pairs | 95.1 |
"""
BOOK: dict[str, Any] = {
    "results": {
        "direct.json": {
            "found": ["data", {"scheme": "gumbel", "block_size": 2}, "tpr", 0],
            "half": ["data", {"scheme": "gumbel", "block_size": 2}, "tpr", 1],
            "quarter": ["data", 0, "tpr", 1],
        }
    },
    "claims": {
        "README.md": [
            "Of texts {found:%i} are found",
            "({half:.1f} times at {quarter:.2f})",
            "| pairs | {found:c1} |",
        ]
    },
    "settings": [{"says": "at 1e-3", "why": "the rate asked for"}],
    "covered": ["README.md"],
}
_MEASURED = """12 %|8.0 to 9 %|1e-9|2.3e-10|[4, 5]|3-fold|7 times|x 3|0.37|14 ms|5 MiB|2 s\
|82 to 106 tokens a second|900 requests/s|1,200 tokens/s|20 minutes"""
NUMBERS = _MEASURED.split("|")

Change = Callable[[str, str, str], list[str]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A page, a result with its own page, and their book."""
    results = tmp_path / "docs/results"
    table = Table("Direct", ("", "found"), (("pairs", "95.1 % [91.0, 97.3]"),))
    Result("direct", "ttmark eval direct", (table,), ROWS).save(results)
    (tmp_path / "README.md").write_text(PAGE)
    (tmp_path / "docs/figures.yml").write_text(yaml.safe_dump(BOOK))
    return tmp_path


@pytest.fixture
def changed(checkout: Path) -> Change:
    """What the check says after words of a file were replaced."""

    def change(name: str, before: str, after: str) -> list[str]:
        path = checkout / name
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))
        return check(checkout)

    return change


def with_book(checkout: Path, **parts: Any) -> list[str]:
    (checkout / "docs/figures.yml").write_text(yaml.safe_dump(BOOK | parts))
    return check(checkout)


@pytest.mark.long
def test_the_numbers_of_this_repository_are_those_of_its_results(root: Path) -> None:
    assert check(root) == []
    assert list(stale_pictures(pictures())) == []


@pytest.mark.parametrize(
    ("before", "after", "says", "due"),
    [
        ("95 % [91,\n97]", "96 % [91,\n97]", "'96 % [91,\\n97]'", "'95 % [91, 97]'"),
        ("95 % [91,\n97]", "95 % [91,\n98]", "'95 % [91,\\n98]'", "'95 % [91, 97]'"),
        ("0.5 times", "0.6 times", "'0.6'", "'0.5'"),
        ("95.1", "95.0", "'95.0'", "'95.1'"),
    ],
)
def test_a_number_that_is_changed_in_a_page_fails(changed, before, after, says, due):
    (line,) = changed("README.md", before, after)
    assert line.startswith("README.md:")
    assert f"says {says}, should say {due}" in line
    assert "direct.json" in line


def test_a_number_that_is_changed_in_a_results_file_fails(changed: Change) -> None:
    lines = changed("docs/results/direct.json", "0.9512", "0.9612")
    assert [line.partition(" (")[0] for line in lines] == [
        "README.md:3: says '95 % [91,\\n97]', should say '96 % [91, 97]'",
        "README.md:12: says '95.1', should say '96.1'",
    ]


def test_new_numbers_that_look_measured_fail_one_by_one(checkout: Path) -> None:
    for number in NUMBERS:
        (checkout / "README.md").write_text(PAGE.replace("See ", f"It has {number} more. See "))
        assert check(checkout) == [
            f"README.md:4: {number!r}: looks measured; docs/figures.yml has no claim and no setting for it"
        ]
    (checkout / "README.md").write_text(PAGE + "| blocks | 17, 18 |\n")
    assert len(check(checkout)) == 1


def test_a_number_in_the_words_of_a_setting_is_no_figure_but_alone_it_is(checkout: Path) -> None:
    (checkout / "README.md").write_text(PAGE + "\nAt 1e-3 and at 1e-3.5 too.\n")
    assert [line.partition(": looks")[0] for line in check(checkout)] == ["README.md:14: '1e-3'"]


def test_values_phrases_and_settings_that_nobody_uses_fail(checkout: Path) -> None:
    extra = {"direct.json": BOOK["results"]["direct.json"] | {"spare": ["data", 0, "block_size"]}}
    assert with_book(checkout, results=extra) == ["docs/figures.yml: no page states spare"]
    setting = {"says": "at 1e-9", "why": "the rate asked for"}
    assert (
        "no page has the setting 'at 1e-9'" in with_book(checkout, settings=[*BOOK["settings"], setting])[0]
    )
    more = {"README.md": [*BOOK["claims"]["README.md"], "No such words: {found:%}"]}
    assert with_book(checkout, claims=more) == ["README.md: no such words: 'No such words: {found:%}'"]
    more = {"README.md": [*BOOK["claims"]["README.md"], "Of texts {lost:%i} are"]}
    assert with_book(checkout, claims=more) == ["README.md: no value has the name 'lost'"]
    assert with_book(checkout, covered=["README.md", "NONE.md"]) == ["docs/figures.yml: no page NONE.md"]


def test_a_recorded_number_has_to_stand_in_its_section(checkout: Path) -> None:
    (checkout / "docs/speed.md").write_text(
        "# Speed\n\n## Over HTTP\n\n870 requests/s.\n\n## Bulk\n\n5 requests/s.\n"
    )
    claims = {"README.md": [*BOOK["claims"]["README.md"], "does {speed:.0f} requests/s"]}
    (checkout / "README.md").write_text(PAGE + "\nIt does 870 requests/s.\n")
    recorded = {"docs/speed.md#over-http": {"speed": "870 requests/s"}}
    assert with_book(checkout, claims=claims, recorded=recorded) == []
    for place in ("docs/speed.md#bulk", "docs/speed.md#none", "docs/none.md"):
        lines = with_book(checkout, claims=claims, recorded={place: {"speed": "870 requests/s"}})
        assert lines[0].startswith(f"docs/figures.yml: speed of {place}: ")
    lines = with_book(
        checkout, claims=claims, recorded={"docs/speed.md#over-http": {"speed": "70 requests/s"}}
    )
    assert "does not stand there" in lines[0]


def test_writing_puts_the_values_into_the_page_and_nothing_else(checkout: Path) -> None:
    wrong = PAGE.replace("95 % [91,\n97]", "9 % [8, 10]").replace("95.1", "12")
    (checkout / "README.md").write_text(wrong)
    assert check(checkout, write=True) == []
    assert (checkout / "README.md").read_text() == PAGE.replace("[91,\n97]", "[91, 97]")


def test_a_table_that_is_changed_in_its_page_fails(changed: Change) -> None:
    lines = changed("docs/results/direct.md", "95.1 %", "96.1 %")
    assert any("direct.json: no page beside it holds its tables" in line for line in lines)
    assert any("direct.md: 1 results say what made them, 0 are of results files" in line for line in lines)


def test_a_command_that_is_changed_in_its_page_fails_and_a_machine_may_stand_elsewhere(
    changed: Change,
) -> None:
    made, path = "Made by `ttmark eval direct`", "docs/results/direct.json"
    assert changed(path, '"machine": null', f'"machine": {json.dumps(machine())}') == []
    lines = changed("docs/results/direct.md", made, made.replace("direct", "strict"))
    assert any("direct.json: no page beside it holds its tables" in line for line in lines)


def test_a_table_without_a_page_fails_unless_the_book_says_why(checkout: Path) -> None:
    (checkout / "docs/results/direct.md").unlink()
    assert len(check(checkout)) == 1
    assert with_book(checkout, unprinted={"direct*.json": "told in prose"}) == []
    assert with_book(checkout, unprinted={"direct*.json": "told", "none.json": "gone"}) == [
        "no results file is named none.json"
    ]


def test_a_drawing_that_is_not_what_the_results_give_fails(tmp_path: Path) -> None:
    same, other, none = (tmp_path / name for name in ("same.svg", "other.svg", "none.svg"))
    same.write_text("a")
    other.write_text("b")
    lines = stale_pictures(dict.fromkeys((same, other, none), "a"))
    assert [line.partition(":")[0] for line in lines] == ["other.svg", "none.svg"]


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (Measured(0.0183, 0.0102, 0.0333), "%1i", "1.8 % [1.0, 3.3]"),
        (Measured(1.292, 1.195, 1.396), ".2fi", "1.29 [1.20, 1.40]"),
        (Measured(200.0), "", "200"),
    ],
)
def test_values_are_written_as_documents_write_them(value: Measured, spec: str, text: str) -> None:
    assert format(value, spec) == text


@pytest.mark.parametrize(
    "path",
    [["none"], ["data", 3], ["data", {"z": 1}], ["data", {"none": 1}], ["data", {}], ["data"], ["said"]],
)
def test_a_path_to_nothing_or_to_more_than_one_entry_is_refused(path: list[Any]) -> None:
    with pytest.raises(BadFigure):
        value_at({"data": [{"z": 2}, {"z": 2}], "said": "ttmark"}, path)


def test_an_interval_that_is_not_there_is_not_written() -> None:
    with pytest.raises(BadFigure, match="no interval"):
        format(Measured(0.5), "%i")
