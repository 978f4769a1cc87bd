"""A run resumes: what is on disk is not generated again."""

from collections.abc import Callable
from typing import Any

import pytest

from ttmark.evaluation.experiment_cells import Cell, SamplingSetting
from ttmark.evaluation.run_folder import Run

pytestmark = pytest.mark.long

SETTING = SamplingSetting(50, 0.95, 1.0)
CELL = Cell("synthid", 2, SETTING, 20)


def test_texts_on_disk_are_not_generated_again(open_run: Callable[[], Run], source: Any) -> None:
    first = open_run().texts(CELL, 3)
    again = open_run().texts(CELL, 5)
    assert again[:3] == first
    assert source.made == [(CELL.name, index) for index in range(5)]


def test_a_line_cut_off_by_a_crash_is_generated_again(open_run: Callable[[], Run], source: Any) -> None:
    run = open_run()
    texts = run.texts(CELL, 3)
    path = run.folder / "texts" / f"{CELL.name}.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert open_run().texts(CELL, 3) == texts
    assert source.made[-1] == (CELL.name, 2)
    assert len(path.read_bytes().splitlines()) == 4


def test_texts_of_a_cell_have_different_keys(open_run: Callable[[], Run]) -> None:
    run = open_run()
    texts = run.texts(CELL, 4)
    other = Cell("synthid", 1, SETTING, 20)
    keys = {cell.key(run.seed, text.index) for cell in (CELL, other) for text in texts}
    assert len(keys) == 8


def test_cells_that_differ_have_names_that_differ() -> None:
    cells = [
        CELL,
        Cell("synthid", 1, SETTING, 20),
        Cell(None, 1, SETTING, 20),
        Cell("synthid", 2, SETTING, 21),
        Cell("synthid", 2, SETTING, 20, context_width=6),
        Cell("synthid", 2, SamplingSetting(50, 0.95, 0.99), 20),
    ]
    assert len({cell.name for cell in cells}) == len(cells)
