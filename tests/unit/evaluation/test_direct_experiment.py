"""Direct detection from texts to tables, on a model that costs nothing."""

from collections.abc import Callable

import pytest
from scipy.stats import norm

from ttmark.evaluation.cli.app import direct_tables, grid, measure_direct
from ttmark.evaluation.experiment_cells import SamplingSetting
from ttmark.evaluation.run_folder import Run

pytestmark = pytest.mark.long

SETTING = SamplingSetting(12, 1.0, 1.5)
LENGTHS = (30, 60)


def test_pairs_gain_over_single_tokens_in_tables_laid_out_like_the_papers(
    open_run: Callable[[], Run],
) -> None:
    cells = grid(("mcmark",), (2, 1), SETTING, 60)
    rows = measure_direct(open_run(), cells, 12, LENGTHS, null_keys=10)
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
    assert "12 texts per row" in tables[0].notes[0]
