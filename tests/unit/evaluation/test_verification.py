"""Texts weighted by the model that wrote them, on a model that costs nothing."""

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
    false_positives,
    measure_cell,
    tables,
)
from ttmark.evaluation.run import Run
from ttmark.evaluation.simulated import SimulatedSource
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.detectors.weighted import detect_weighted

SETTING = SamplingSetting(50, 0.95, 1.0)


def test_weights_raise_z_and_false_positives_are_as_rare_as_promised(tmp_path: Path) -> None:
    source = SimulatedSource()
    run = Run(tmp_path, source, 0, Progress(disable=True))
    lab: Any = SimpleNamespace(run=run, source=source, prompt=lambda index: source.prompts[index])
    rows = measure_cell(lab, Cell("gumbel", 1, SETTING, 60), 4, alone=2, null_keys=200)
    assert [(row.reading, row.texts) for row in rows] == [
        (WITH_PROMPT, 4),
        (WRONG_SAMPLING, 4),
        (TEXT_ALONE, 2),
    ]
    assert rows[0].gain.estimate > 1.1
    assert rows[0].null_trials == 800
    assert rows[0].null_rates[0].low <= 1e-2 <= rows[0].null_rates[0].high
    power, *_, null = tables(rows, 60, SETTING)
    assert (len(power.rows), len(null.rows)) == (1, 1)


def test_false_positives_are_counted_as_if_each_p_value_were_computed() -> None:
    watermark, generator = Watermark("synthid", 1), np.random.default_rng(4)
    tokens = generator.integers(500, size=50)
    probs = generator.random(50)
    keys = [generator.bytes(16) for _ in range(200)]
    log10_p = np.array([detect_weighted(watermark, [key], tokens, probs).weighted.log10_p for key in keys])
    counted = false_positives(watermark, keys, tokens, probs)
    assert counted.tolist() == [int(np.sum(log10_p <= -2)), int(np.sum(log10_p <= -3))]
    assert counted[0] > 0
