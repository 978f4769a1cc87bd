"""Values of results files: where they stand and how documents write them."""

import json
from typing import Any

import pytest

from tests.harness.figures.values import BadFigure, Measured, derived, value_at


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (Measured(0.9512, 0.9101, 0.9732), "%i", "95 % [91, 97]"),
        (Measured(0.0183, 0.0102, 0.0333), "%1i", "1.8 % [1.0, 3.3]"),
        (Measured(0.075), "c1", "7.5"),
        (Measured(9.54e-6), "p", "9.5e-6"),
        (Measured(-60.46), "L", "3.5e-61"),
        (Measured(1.292, 1.195, 1.396), ".2fi", "1.29 [1.20, 1.40]"),
        (Measured(1234.0), ",.0f", "1,234"),
        (Measured(200.0), "", "200"),
    ],
)
def test_values_are_written_as_documents_write_them(value: Measured, spec: str, text: str) -> None:
    assert format(value, spec) == text


def test_values_are_derived_and_an_interval_that_a_value_has_not_cannot_be_written() -> None:
    with pytest.raises(BadFigure, match="no interval"):
        format(Measured(0.5), "%i")
    known = {"a": Measured(1.0), "b": Measured(4.0), "c": Measured(2.0), "text": "ttmark"}
    ways = {"ratio": ["b", "c"], "difference": ["a", "b"], "least": ["b", "c"], "most": ["a", "b", "c"]}
    assert {way: derived({way: names}, known).estimate for way, names in ways.items()} == {
        "ratio": 2.0,
        "difference": -3.0,
        "least": 2.0,
        "most": 4.0,
    }


def test_paths_choose_entries_by_values_rows_of_tables_by_columns_and_read_cells() -> None:
    document = {
        "data": [{"setting": {"top_k": 50}, "z": 1.5}, {"setting": {"top_k": 20}, "z": 2.5}],
        "tables": [{"columns": ["name", "found"], "rows": [["a", "95.0 % [91.0, 97.3]"], ["b", "1,234"]]}],
    }
    assert value_at(document, ["data", {"setting.top_k": 20}, "z"]) == Measured(2.5)
    assert value_at(document, ["tables", 0, {"name": "a"}, "found"]) == Measured(0.95, 0.91, 0.973)
    assert value_at(document, ["tables", 0, {"name": "b"}, "found"]) == Measured(1234.0)
    assert value_at(document, ["tables", 0, {"found": "1,234"}, "name"]) == "b"


@pytest.mark.parametrize(
    "path", [["none"], ["data", 3], ["data", {"z": 1}], ["data", {"none": 1}], ["data", {}], ["data"]]
)
def test_a_path_to_nothing_or_to_more_than_one_entry_is_refused(path: list[Any]) -> None:
    with pytest.raises(BadFigure):
        value_at(json.loads('{"data": [{"z": 2}, {"z": 2}]}'), path)


@pytest.mark.parametrize("how", [{"ratio": ["a"]}, {"sum": ["a", "a"]}, {"most": ["text"]}, {"most": []}])
def test_what_cannot_be_derived_is_refused(how: dict[str, list[str]]) -> None:
    with pytest.raises(BadFigure):
        derived(how, {"a": Measured(1.0), "text": "ttmark"})
