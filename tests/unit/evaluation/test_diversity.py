"""Diversity under a pool, from completions under one key, agrees with playing pool and requests through."""

from itertools import combinations

import numpy as np
import pytest

from ttmark.evaluation.diversity import (
    coinciding_pairs,
    distinct_of,
    distinct_share,
    group_sizes,
    unmarked_share,
)


def test_completions_are_counted_by_all_their_tokens() -> None:
    texts = np.array([[1, 2], [1, 3], [1, 2], [4, 2]])
    assert sorted(group_sizes(texts).tolist()) == [1, 1, 2]
    assert coinciding_pairs(group_sizes(texts)) == 1 / 6


def test_expected_distinct_ones_are_the_mean_over_all_choices() -> None:
    sizes = np.array([3, 2, 1])
    texts = np.repeat(np.arange(3), sizes)
    for draws in range(1, 7):
        slow = np.mean([len(set(chosen)) for chosen in combinations(texts.tolist(), draws)])
        assert distinct_of(sizes, 6)[draws] == pytest.approx(slow)


def test_beyond_what_was_counted_it_is_a_lower_bound() -> None:
    generator, exact = np.random.default_rng(1), 1 - (1 - np.full(500, 1 / 500)) ** 60
    few = np.mean(
        [distinct_of(group_sizes(generator.integers(500, size=(16, 1))), 60)[60] for _ in range(400)]
    )
    assert 0.6 * exact.sum() < few <= exact.sum()
    alike = distinct_of(np.array([8, 8]), 60)
    assert alike[60] == 2


@pytest.mark.parametrize("pool", [1, 4, 16, 64])
@pytest.mark.parametrize("requests", [20, 60])
def test_the_share_is_that_of_pools_that_are_played_through(pool: int, requests: int) -> None:
    """A completion is an opening that the model draws and a continuation that key and opening decide."""
    generator = np.random.default_rng([pool, requests])
    openings = np.array([0.5, 0.3, 0.1, 0.05, 0.05])

    def completions(keys: np.ndarray) -> np.ndarray:
        """[opening, continuation]; of all continuations there are 1,000, by key and opening."""
        drawn = generator.choice(len(openings), p=openings, size=len(keys))
        decided = generator.integers(1_000, size=(keys.max() + 1, len(openings)))
        return np.stack([drawn, decided[keys, drawn]], axis=1)

    played = [
        len(group_sizes(completions(generator.integers(pool, size=requests)))) / requests for _ in range(600)
    ]
    estimated = [
        distinct_share(
            group_sizes(completions(np.zeros(60, dtype=int))),
            group_sizes(completions(np.arange(1_000))),
            requests,
            pool,
        )
        for _ in range(120)
    ]
    # Pairs under different keys are counted apart though three may be equal, so it may be a little below.
    assert np.mean(played) - 0.02 < np.mean(estimated) < np.mean(played) + 0.015


def test_without_a_watermark_every_equal_pair_takes_one_away() -> None:
    generator = np.random.default_rng(4)
    texts = generator.integers(20_000, size=(4_000, 1))
    slow = np.mean([len(np.unique(generator.choice(texts, 60, replace=False))) / 60 for _ in range(400)])
    assert unmarked_share(group_sizes(texts), 60) == pytest.approx(slow, abs=5e-4)
