"""Tables and results on disk."""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from ttmark.evaluation.report import Result, Table
from ttmark.evaluation.run_manifest import machine, versions

TABLE = Table("Title", ("a", "b"), (("1", "x|y"),), ("a note",))


def test_markdown_escapes_bars_and_ends_with_the_notes() -> None:
    assert TABLE.markdown() == "**Title**\n\n| a | b |\n| --- | --- |\n| 1 | x\\|y |\n\n- a note\n"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        Table("Title", ("a", "b"), (("1",),))


def test_a_table_that_is_set_aside_is_counted_on_the_page_and_kept_in_the_file(tmp_path: Path) -> None:
    aside = replace(TABLE, title="Other", aside=True)
    result = Result("name", "ttmark eval name", (TABLE, aside), ({"cell": 1},))
    result.save(tmp_path)
    assert Result.load(tmp_path / "name.json") == result
    page = TABLE.markdown() + "\nIn [name.json](name.json) alone: 1 table.\n\nMade by `ttmark eval name`.\n"
    assert (tmp_path / "name.md").read_text() == page


def test_a_result_says_on_what_it_was_made(tmp_path: Path) -> None:
    result = Result("name", "ttmark eval name", (TABLE,), (), machine(), versions())
    result.save(tmp_path)
    assert Result.load(tmp_path / "name.json") == result
    last = result.markdown().splitlines()[-1]
    assert last.startswith("on ")
    assert f"{machine()['processor']}, {machine()['cores']} cores" in last
    assert version("numpy") in (tmp_path / "name.json").read_text()
