"""The other experiments on a model that costs nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ttmark.evaluation.cells import Cell, SamplingSetting
from ttmark.evaluation.experiments.cost import cost_figure, cost_table, pareto
from ttmark.evaluation.experiments.direct import grid, measure_direct
from ttmark.evaluation.experiments.localized import LocalizedPlan, localized_table, measure_localized
from ttmark.evaluation.experiments.repeated import (
    Repeated,
    collision_rate,
    distinct_share,
    measure_repeated,
    positional_distance,
    repeated_table,
)
from ttmark.evaluation.experiments.runtime import Runtime, measure_runtime, runtime_figure, runtime_table
from ttmark.evaluation.run import Run

SETTING = SamplingSetting(50, 0.95, 1.0)


def test_spans_of_pairs_are_found_in_a_document_by_people(open_run: Callable[[], Run]) -> None:
    human = [np.random.default_rng(10).integers(0, 12, size=2_000)]
    plan = LocalizedPlan(("synthid",), (2,), SETTING, 4, 600, methods=("scan",))
    rows = measure_localized(open_run(), plan, human)
    assert rows[0].fnr.estimate == 0.0
    assert rows[0].iou.estimate > 0.6
    assert len(localized_table(rows, SETTING).rows) == 1


def test_every_span_of_a_document_counts(open_run: Callable[[], Run]) -> None:
    human = [np.random.default_rng(10).integers(0, 12, size=2_000)]
    plan = LocalizedPlan(("synthid",), (2,), SETTING, 4, 800, spans=3, methods=("scan",))
    row = measure_localized(open_run(), plan, human)[0]
    assert row.fnr.estimate == 0.0
    assert row.iou.estimate > 0.6
    assert "3 spans" in localized_table([row], SETTING).title


def test_completions_under_one_key_resemble_each_other_more_than_unwatermarked_ones(
    open_run: Callable[[], Run],
) -> None:
    plan = Repeated(schemes=("gumbel",), block_sizes=(1,), length=12, prompt_count=2, completions=40)
    rows = measure_repeated(open_run(), plan, SETTING)
    assert [row.scheme for row in rows] == [None, "gumbel"]
    assert rows[1].collision.estimate > rows[0].collision.estimate
    assert len(repeated_table(rows, plan, SETTING).rows) == 2


def test_a_width_that_is_the_default_names_the_same_texts_and_sets_the_warm_up(
    open_run: Callable[[], Run],
) -> None:
    plan = Repeated(schemes=("synthid",), block_sizes=(2,), length=12, prompt_count=2, completions=4)
    widths = replace(plan, context_widths=(2, 4, 5))
    assert [cell.context_width for cell in widths.cells(SETTING)] == [None, 2, None, 5]
    assert widths.cells(SETTING)[2] == plan.cells(SETTING)[1]
    rows = repeated_table(measure_repeated(open_run(), widths, SETTING), widths, SETTING).rows
    assert [row[2:4] for row in rows] == [("", ""), ("2", "2"), ("4", "4"), ("5", "6")]


def test_measures_of_repetition_agree_with_counting_by_hand() -> None:
    texts = np.array([[1, 2], [1, 2], [1, 3]])
    assert distinct_share(texts) == pytest.approx(2 / 3)
    assert collision_rate(texts) == pytest.approx((1 + 1 / 3) / 2)
    assert positional_distance(texts, np.array([[1, 2], [1, 3], [1, 3]])) == pytest.approx((0 + 1 / 3) / 2)


def test_cost_counts_rows_without_the_prompts(open_run: Callable[[], Run]) -> None:
    cells = grid(("synthid",), {1: 6, 2: 6}, SETTING, 40)
    rows = measure_direct(open_run(), cells, (20, 40), lambda _: 40, null_keys=0)
    assert {row.rows for row in rows} == {2.0}
    assert {row.block_size for row in pareto(rows)} <= {1, 2}
    assert len(cost_table(rows).rows) == 4
    cells = grid(("synthid",), {1: 6, 2: 6}, SamplingSetting(50, 0.95, 1.5), 20)
    warmer = measure_direct(open_run(), cells, (20,), lambda _: 40, null_keys=0)
    panels = cost_figure([*rows, *warmer]).panels
    assert [panel.title for panel in panels] == ["T 1, 20 tokens", "T 1, 40 tokens", "T 1.5, 20 tokens"]


def test_runtime_visits_every_kind_at_every_number_of_candidates(source: Any) -> None:
    plan = Runtime(("synthid",), (1, 2), length=8, texts=2, repeats=1, candidates=(2, 4))
    rows = measure_runtime(source, plan, 0)
    assert len(rows) == 6
    assert len(runtime_table(rows, plan).rows) == 3
    assert len(runtime_figure(rows).panels[0].series) == 3


def test_a_cell_without_a_watermark_has_none() -> None:
    with pytest.raises(ValueError, match="without a watermark"):
        Cell(None, 1, SETTING, 20).watermark()
