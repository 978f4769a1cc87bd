"""The comparison of the documents' numbers with the results files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.figures.__main__ import check
from tests.harness.figures.result_pages import stale_pictures
from tests.harness.reference.result_plots import pictures
from ttmark.evaluation.report import Result, Table

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


def test_writing_puts_the_values_into_the_page_and_nothing_else(checkout: Path) -> None:
    wrong = PAGE.replace("95 % [91,\n97]", "9 % [8, 10]").replace("95.1", "12")
    (checkout / "README.md").write_text(wrong)
    assert check(checkout, write=True) == []
    assert (checkout / "README.md").read_text() == PAGE.replace("[91,\n97]", "[91, 97]")


def test_a_table_that_is_changed_in_its_page_fails(changed: Change) -> None:
    lines = changed("docs/results/direct.md", "95.1 %", "96.1 %")
    assert any("direct.json: no page beside it holds its tables" in line for line in lines)
    assert any("direct.md: 1 results say what made them, 0 are of results files" in line for line in lines)
