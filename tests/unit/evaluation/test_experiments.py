"""The other experiments on a model that costs nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ttmark.evaluation.experiment_cells import Cell, SamplingSetting
from ttmark.evaluation.experiments.localized import Localized, localized_table, measure_localized
from ttmark.evaluation.experiments.runtime import Runtime, measure_runtime, runtime_figure, runtime_table
from ttmark.evaluation.run_folder import Run

SETTING = SamplingSetting(50, 0.95, 1.0)


def test_spans_of_pairs_are_found_in_a_document_by_people_and_each_counts(
    open_run: Callable[[], Run],
) -> None:
    human = [np.random.default_rng(10).integers(0, 12, size=2_000)]
    plan = Localized(schemes=("synthid",), block_sizes=(2,), documents=4)
    rows = measure_localized(open_run(), plan, SETTING, 600, 1, human, methods=("scan",))
    assert rows[0].fnr.estimate == 0.0
    assert rows[0].iou.estimate > 0.6
    assert len(localized_table(rows, SETTING).rows) == 1
    row = measure_localized(open_run(), plan, SETTING, 800, 3, human, methods=("scan",))[0]
    assert row.fnr.estimate == 0.0
    assert row.iou.estimate > 0.6
    assert "3 spans" in localized_table([row], SETTING).title


def test_runtime_visits_every_kind_at_every_number_of_candidates(source: Any) -> None:
    plan = Runtime(("synthid",), (1, 2), length=8, texts=2, repeats=1, candidates=(2, 4))
    rows = measure_runtime(source, plan, 0)
    assert len(rows) == 6
    assert len(runtime_table(rows, plan).rows) == 3
    assert len(runtime_figure(rows).panels[0].series) == 3


def test_a_cell_without_a_watermark_has_none() -> None:
    with pytest.raises(ValueError, match="without a watermark"):
        Cell(None, 1, SETTING, 20).watermark()
