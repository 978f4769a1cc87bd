"""The branch budget that follows from what a pass costs."""

import pytest

from ttmark.gen_service.engine import autotune
from ttmark.gen_service.engine.autotune import CostCurve

CURVE = CostCurve((1, 2, 4, 8, 16, 32, 64, 128), (1.0, 1.0, 1.1, 1.2, 1.4, 1.9, 2.9, 5.0))


def test_the_knee_is_where_a_pass_costs_twice_that_of_a_row() -> None:
    assert CURVE.knee == 32
    assert CostCurve((1, 2, 4), (1.0, 2.0, 4.0)).knee == 2


@pytest.mark.parametrize(("sequences", "budget"), [(0, 32), (1, 32), (4, 8), (8, 4), (500, 4)])
def test_the_budget_shares_the_rows_below_the_knee(sequences: int, budget: int) -> None:
    assert CURVE.branch_budget(sequences) == budget


def test_powers_of_two_are_timed_up_to_the_limit_and_no_further_than_the_knee(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(autotune, "seconds_of", lambda run, rows: 1.0)
    assert CostCurve.measure(lambda rows: None, 20).rows == (1, 2, 4, 8, 16)
    monkeypatch.setattr(autotune, "seconds_of", lambda run, rows: 1.0 + rows / 4)
    curve = CostCurve.measure(lambda rows: None, 512)
    assert (curve.rows, curve.knee) == ((1, 2, 4, 8), 4)
