"""Finding a temperature."""

from typing import Any, cast

import pytest
from rich.console import Console

from ttmark.evaluation.calibration import solve_falling
from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import SamplingSetting, Setting


@pytest.mark.parametrize("target", [-0.5, -1.3, -5.0, -9.0])
def test_the_crossing_of_a_falling_curve_is_found(target: float) -> None:
    found = solve_falling(lambda x: -(x**3) - x, target)
    assert -(found**3) - found == pytest.approx(target, abs=0.3)


def test_a_target_out_of_reach_gives_the_nearer_end_and_few_values_are_asked_for() -> None:
    assert solve_falling(lambda x: -x, -5.0) == 2.0
    assert solve_falling(lambda x: -x, 0.0) == 0.2
    asked = []

    def steep(temperature: float) -> float:
        asked.append(temperature)
        return -50 * (temperature - 0.5)

    assert solve_falling(steep, -5.02) == pytest.approx(0.6, abs=0.01)
    assert len(asked) <= 4


def test_sampling_that_is_given_is_used_as_it_is_and_nothing_is_calibrated() -> None:
    nothing = cast(Any, None)
    lab = Lab(nothing, nothing, Console(), sampling={"temperature": 0.57, "top_k": 20})
    assert lab.setting(Setting.ISO) == SamplingSetting(20, 0.95, 0.57)
    assert lab.setting(Setting.CHAT) == SamplingSetting(20, 0.9, 0.57)
