"""Quality measures."""

import numpy as np
import pytest

from ttmark.evaluation.text_quality import (
    count_matrix,
    distinct_n,
    has_loop,
    permutation_p,
    total_variation,
    until_end,
)


def test_a_text_stops_at_its_first_end_and_a_loop_is_a_run_that_comes_three_times() -> None:
    assert until_end([5, 6, 0, 7, 1], {0, 1}) == (5, 6, 0)
    assert until_end([5, 6], {0}) == (5, 6)
    assert until_end([0], {0}) == (0,)
    run = list(range(8))
    assert has_loop([*run, 99, *run, 98, *run])
    assert not has_loop([*run, 99, *run])
    assert not has_loop([])


def test_counts_of_tokens_their_kinds_and_their_distance() -> None:
    assert distinct_n([1, 2, 1, 2, 1], 2) == pytest.approx(2 / 4)
    assert distinct_n([1], 2) == 1.0
    assert count_matrix([[5, 5, 7], [9]], [5, 7]).tolist() == [[2, 1, 0], [0, 0, 1]]
    assert total_variation(np.array([1.0, 1.0]), np.array([10.0, 10.0])) == 0.0
    assert total_variation(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1.0


def test_permutation_p_values_are_uniform_without_and_small_with_a_difference() -> None:
    generator = np.random.default_rng(6)
    equal = [
        permutation_p(
            generator.multinomial(50, [0.5, 0.3, 0.2], size=20) * 1.0,
            generator.multinomial(50, [0.5, 0.3, 0.2], size=20) * 1.0,
            permutations=99,
        )
        for _ in range(60)
    ]
    assert sum(p <= 0.1 for p in equal) <= 14  # Binomial(60, 0.1) exceeds 14 with p < 1e-3
    first = generator.multinomial(50, [0.5, 0.3, 0.2], size=20) * 1.0
    second = generator.multinomial(50, [0.3, 0.4, 0.3], size=20) * 1.0
    assert permutation_p(first, second, permutations=999) == pytest.approx(0.001)
