"""Finding a temperature."""

import pytest

from evaluation.calibration import solve_falling


@pytest.mark.parametrize("target", [-1.0, -5.0, -9.0])
def test_the_crossing_of_a_falling_curve_is_found(target: float) -> None:
    found = solve_falling(lambda x: -(x**3) - x, target, 0.3, 2.0, steps=12)
    assert -(found**3) - found == pytest.approx(target, abs=0.15)


def test_a_target_out_of_reach_gives_the_nearer_end() -> None:
    assert solve_falling(lambda x: -x, -5.0, 0.3, 2.0, steps=6) == 2.0
    assert solve_falling(lambda x: -x, 0.0, 0.3, 2.0, steps=6) == 0.3
