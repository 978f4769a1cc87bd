"""Finding a temperature."""

import pytest

from ttmark.evaluation.calibration import solve_falling


@pytest.mark.parametrize("target", [-0.5, -1.3, -5.0, -9.0])
def test_the_crossing_of_a_falling_curve_is_found(target: float) -> None:
    found = solve_falling(lambda x: -(x**3) - x, target)
    assert -(found**3) - found == pytest.approx(target, abs=0.3)


def test_a_target_out_of_reach_gives_the_nearer_end() -> None:
    assert solve_falling(lambda x: -x, -5.0) == 2.0
    assert solve_falling(lambda x: -x, 0.0) == 0.2


def test_few_values_are_asked_for() -> None:
    asked = []

    def steep(temperature: float) -> float:
        asked.append(temperature)
        return -50 * (temperature - 0.5)

    assert solve_falling(steep, -5.02) == pytest.approx(0.6, abs=0.01)
    assert len(asked) <= 4
