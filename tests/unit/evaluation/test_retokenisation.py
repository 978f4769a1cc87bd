"""Texts that are read as other tokens, in the eyes of each mode of detection."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ttmark.evaluation.cells import Cell, SamplingSetting
from ttmark.evaluation.experiments.retokenisation import measure_cell, retokenisation_table
from ttmark.evaluation.run import Run

SETTING = SamplingSetting(50, 0.95, 1.0)


class DropsTheFirst:
    """A tokenizer that reads a text without its first token."""

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()[1:]]


def test_a_shift_costs_direct_detection_at_phase_0_and_no_other_mode(open_run: Callable[[], Run]) -> None:
    lab: Any = SimpleNamespace(run=open_run(), source=SimpleNamespace(tokenizer=DropsTheFirst()))
    rows = measure_cell(lab, Cell("gumbel", 2, SETTING, 200), 5)
    assert all(row.changed.estimate == row.shifted.estimate == 1.0 for row in rows)
    found = {row.mode: (row.from_tokens.estimate, row.from_text.estimate) for row in rows}
    assert found["direct, phase 0"] == (1.0, 0.0)
    assert found["direct, any phase"] == found["aligned"] == found["localized"] == (1.0, 1.0)
    assert all(row.of_changed == row.from_text for row in rows)
    assert len(retokenisation_table(rows, 200, SETTING).rows) == len(np.unique(list(found))) == 4
