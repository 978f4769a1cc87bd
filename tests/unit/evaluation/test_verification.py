"""Texts read by the model that wrote them, on a model that costs nothing."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.progress import Progress

from ttmark.evaluation.cells import Cell, SamplingSetting
from ttmark.evaluation.experiments.verification import (
    TEXT_ALONE,
    WITH_PROMPT,
    WRONG_SAMPLING,
    measure_cell,
    tables,
)
from ttmark.evaluation.run import Run
from ttmark.evaluation.simulated import SimulatedSource
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood

SETTING = SamplingSetting(50, 0.95, 1.0)


def test_each_way_of_reading_is_measured_and_false_positives_are_as_rare_as_promised(tmp_path: Path) -> None:
    source = SimulatedSource()
    run = Run(tmp_path, source, 0, Progress(disable=True))
    lab: Any = SimpleNamespace(run=run, source=source, prompt=lambda index: source.prompts[index])
    cell = Cell("gumbel", 1, SETTING, 60)
    rows = measure_cell(lab, cell, 4, alone=2, null_keys=200)
    assert [(row.reading, row.texts) for row in rows] == [
        (WITH_PROMPT, 4),
        (WRONG_SAMPLING, 4),
        (TEXT_ALONE, 2),
    ]
    unread = [
        detect_likelihood(cell.watermark(), [cell.key(0, text.index)], text.tokens(), rate=1e-5).log10_p
        for text in run.texts(cell, 4)
    ]
    assert rows[0].median_log10_p[0] == rows[1].median_log10_p[0] == float(np.median(unread))
    assert rows[0].median_log10_p[1] not in (rows[0].median_log10_p[0], rows[2].median_log10_p[1])
    assert rows[0].null_trials == 800
    assert 0 < rows[0].null_rates[0].low <= 1e-2
    power, *_, null = tables(rows, 60, SETTING)
    assert (len(power.rows), len(null.rows)) == (1, 1)
