"""The paper's bounds on z."""

import numpy as np
import pytest

from evaluation.entropy import entropy_bits, strength_bound


def test_entropy_of_equal_chances_is_the_logarithm() -> None:
    assert entropy_bits(np.full(8, 1 / 8)) == pytest.approx(3.0)


def test_a_certain_token_leaves_nothing_to_watermark() -> None:
    assert strength_bound(np.array([1.0])) == 0.0


def test_the_bound_of_pairs_is_at_least_what_theorem_2_promises() -> None:
    generator = np.random.default_rng(9)
    for _ in range(50):
        first = generator.dirichlet(np.full(6, 0.3))
        seconds = generator.dirichlet(np.full(5, 0.3), size=6)
        joint = (first[:, None] * seconds).ravel()
        single = strength_bound(first) + sum(
            p * strength_bound(second) for p, second in zip(first, seconds, strict=True)
        )
        assert strength_bound(joint) >= single / np.sqrt(2) - 1e-12
