"""Stealing on a model that costs nothing."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ttmark.evaluation.experiment_cells import SamplingSetting, sampling_seed
from ttmark.evaluation.experiments.stealing import (
    Stealing,
    StealingPlan,
    measure_stealing,
    stealing_figure,
    stealing_table,
)
from ttmark.evaluation.forger import Forger, VictimCell
from ttmark.evaluation.language_model import write_text
from ttmark.evaluation.run_folder import Completion, Run
from ttmark.evaluation.simulated import SimulatedSource
from ttmark.shared.watermark import Watermark

SETTING = SamplingSetting(0, 1.0, 1.0)
PLAN = StealingPlan((("mcmark", 2), (None, 2)), SETTING, (1, 40), 8)


def test_enough_completions_are_stolen_from_and_unmarked_ones_are_not(open_run: Callable[[], Run]) -> None:
    few, many, few_unmarked, many_unmarked = measure_stealing(open_run(), PLAN)
    assert (few.scheme, many.scheme, many_unmarked.scheme) == ("mcmark", "mcmark", None)
    assert (few.asked, many.asked, many.versions) == (1, 40, 1)
    assert many.success[0].estimate == 1.0
    assert few_unmarked.success[0].estimate == many_unmarked.success[0].estimate == 0.0
    assert few.known < many.known <= 1.0
    assert many.median_log10_p < few.median_log10_p


def test_rotation_leaves_less_to_learn_of_each_version(open_run: Callable[[], Run]) -> None:
    plan = replace(PLAN, targets=(("mcmark", 2),), rotate_after=(None, 1_000))
    rows = measure_stealing(open_run(), plan)
    assert [(row.rotate_after, row.asked, row.versions) for row in rows] == [
        (None, 1, 1),
        (None, 40, 1),
        (1_000, 40, 8),
    ]
    assert rows[2].median_log10_p > rows[1].median_log10_p + 2
    table = stealing_table(rows, plan)
    assert [row[2:5] for row in table.rows] == [
        ("never", "1", "1"),
        ("never", "40", "1"),
        ("1000", "40", "8"),
    ]
    kept, rotated = stealing_figure(rows).panels[0].series
    assert (kept.x, rotated.x) == ((1, 40), (40,))


def test_a_pool_leaves_a_part_to_learn_of_each_key_and_all_its_keys_are_tried(
    open_run: Callable[[], Run],
) -> None:
    plan = replace(PLAN, targets=(("mcmark", 2),), asked=(40,), pools=(1, 16), forgeries=4)
    one, many = measure_stealing(open_run(), plan)
    assert (one.versions, many.versions) == (1, 16)
    assert many.median_log10_p > one.median_log10_p + 2
    assert [series.label for series in stealing_figure([one, many]).panels[0].series] == [
        "ENS-MCMark, H = 2",
        "ENS-MCMark, H = 2, 16 keys",
    ]
    cell = VictimCell("mcmark", 2, SETTING, 20, pool=16)
    drawn = [cell.version(index) for index in range(400)]
    assert set(drawn) == set(range(16))
    assert cell.key(0, 7) == cell.keys(0, range(16))[drawn[7]]


def test_a_run_resumes_and_forges_nothing_twice(open_run: Callable[[], Run], source: object) -> None:
    plan = replace(PLAN, targets=(("mcmark", 2),), asked=(2,), forgeries=2)
    first = measure_stealing(open_run(), plan)
    made = len(source.made)  # type: ignore[attr-defined]
    assert measure_stealing(open_run(), plan) == first
    assert len(source.made) == made  # type: ignore[attr-defined]


def test_a_block_is_preferred_as_often_as_it_was_seen_beyond_the_models_own_probability() -> None:
    watermark = Watermark("mcmark", 2, 2)
    text = np.array([1, 2, 5, 6, 1, 2, 9, 9])  # the context 1 2 occurs twice and is keyed once
    forger = Forger(watermark, [text, text[:4], np.array([1, 2, 7, 8])])
    probs = np.array([0.1, 0.1, 0.8])
    preference = forger.preference((1, 2), [(5, 6), (7, 8), (9, 9)], probs)
    assert preference == pytest.approx([(2 + 0.1) / 0.4, (1 + 0.1) / 0.4, 0.8 / 3.2])
    assert forger.preference((3, 4), [(5, 6)], np.array([0.3])) == pytest.approx([1.0])


def test_a_forger_goes_on_where_it_knows_what_follows() -> None:
    forger = Forger(Watermark("mcmark", 2, 2), [np.array([1, 2, 5, 6])])
    blocks, probs = np.array([[1, 2], [3, 4]]), np.array([0.5, 0.5])
    weighted = forger.reweight(
        np.zeros((1, 2), dtype=np.int64), np.array([[7, 7]]), blocks, probs, np.array([0, 2])
    )
    assert weighted.sum() == pytest.approx(1.0)
    assert weighted[0] > 0.8


def test_prompts_and_keys_of_the_completions_are_apart_from_those_of_the_forgeries() -> None:
    cell = VictimCell("mcmark", 2, SETTING, 20, texts_per_key=3, skipped_prompts=4)
    assert {cell.prompt_ids(index, [(n,) for n in range(10)])[0] for index in range(100)} == set(range(4, 10))
    assert [cell.version(index) for index in (0, 2, 3, 8)] == [0, 0, 1, 2]
    assert cell.key(0, 0) == cell.key(0, 2) != cell.key(0, 3)


def test_the_simulated_model_continues_the_prompt_that_the_cell_names() -> None:
    cell = VictimCell("mcmark", 2, SamplingSetting(50, 0.95, 1.0), 12, skipped_prompts=4)
    source, made = SimulatedSource(), list[Completion]()
    source.generate(cell, [0], 0, made.append)
    draws = np.random.default_rng(sampling_seed(0, cell.name, 0))
    expected = write_text(source.language_model, cell, cell.key(0, 0), source.prompts[4], draws)
    assert made[0].token_ids == expected.tokens


def test_options_say_what_is_measured_and_quick_is_a_part_of_it() -> None:
    whole, quick = Stealing().plan(SETTING), Stealing(quick=True).plan(SETTING)
    assert whole.targets == (("mcmark", 2), ("mcmark", 4), ("synthid", 2), ("synthid", 4), (None, 2))
    assert quick.targets == (("mcmark", 2), ("synthid", 2), (None, 2))
    assert (whole.asked, whole.forgeries, quick.asked, quick.forgeries) == ((32, 80, 224), 16, (32,), 8)
    assert whole.rotate_after == quick.rotate_after == (None,)
    given = Stealing(
        schemes=("synthid",), context_widths=(4,), completions=(5,), rotate_after=(0, 9), control=False
    )
    plan = replace(given, quick=True).plan(SETTING)
    assert (plan.targets, plan.asked, plan.rotate_after) == ((("synthid", 4),), (5,), (None, 9))
