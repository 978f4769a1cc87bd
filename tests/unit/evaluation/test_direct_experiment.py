"""Direct detection from texts to tables, on a model that costs nothing."""

from collections.abc import Callable

import pytest
from scipy.stats import norm

from ttmark.evaluation.experiment_cells import SamplingSetting
from ttmark.evaluation.experiments.direct import direct_tables, grid, measure_direct
from ttmark.evaluation.run_folder import Run

SETTING = SamplingSetting(50, 0.95, 0.8)
LENGTHS = (30, 60)


def test_pairs_gain_over_single_tokens_in_tables_laid_out_like_the_papers(
    open_run: Callable[[], Run],
) -> None:
    cells = grid(("mcmark",), {2: 12, 1: 12}, SETTING, 60)
    rows = measure_direct(open_run(), cells, LENGTHS, lambda _: 0, null_keys=10)
    assert [(row.scheme, row.block_size, row.length) for row in rows] == [
        (scheme, block_size, length) for scheme in ("mcmark",) for block_size in (1, 2) for length in LENGTHS
    ]
    for row in rows:
        assert (row.gain is None) == (row.block_size == 1)
        assert row.gain is None or row.gain.estimate > 1.1
        assert row.deviate.estimate == pytest.approx(norm.isf(10**row.median_log10_p.estimate), rel=0.02)
        assert row.fpr[0].low <= 0.1
    tables = direct_tables(rows)
    assert [table.title.split(",")[1] for table in tables] == [" 30 tokens", " 60 tokens"]
    assert [row[0] for row in tables[0].rows] == ["ENS-MCMark", "+ TTMark 2-token"]


def test_fewer_texts_with_larger_blocks_are_said_in_the_table(open_run: Callable[[], Run]) -> None:
    cells = grid(("mcmark",), {1: 12, 2: 5}, SETTING, 60)
    rows = measure_direct(open_run(), cells, LENGTHS, lambda _: 0, null_keys=10)
    assert {(row.block_size, row.texts, row.null_texts) for row in rows} == {(1, 12, 120), (2, 5, 120)}
    assert "Texts per row: 12 with r = 1, 5 with r = 2" in direct_tables(rows)[0].notes[0]
    assert "12 texts per row" in direct_tables(rows[:2])[0].notes[0]
