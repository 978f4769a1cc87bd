"""Sampling by inversion."""

import numpy as np
import pytest

from ttmark.gen_service.decoding.support import choose


@pytest.mark.parametrize(
    ("uniform", "expected"), [(0.0, 1), (0.24, 1), (0.26, 3), (0.99, 3), (1.0 - 2**-53, 3)]
)
def test_choose_inverts_the_cumulative_sum_and_skips_what_has_no_mass(uniform: float, expected: int) -> None:
    assert choose(np.array([0.0, 0.25, 0.0, 0.75, 0.0]), uniform) == expected


def test_choose_normalises() -> None:
    assert choose(np.array([3.0, 1.0]), 0.7) == 0
    assert choose(np.array([3.0, 1.0]), 0.8) == 1
