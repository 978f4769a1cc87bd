"""Against torch itself."""

import pytest
import torch

from ttmark.shared.watermark.foreign.torch_random import Permutation, randint, randperm

SEEDS = (0, 5, 15485863 * 7, (1 << 40) + 3)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_are_those_of_torch(seed: int) -> None:
    assert randperm(seed, 3000).tolist() == torch.randperm(3000, generator=generator(seed)).tolist()
    drawn = torch.randint(0, 2, (5000,), generator=generator(seed))
    assert randint(seed, 2, 5000).tolist() == drawn.tolist()


@pytest.mark.parametrize("head", [1, 2, 250, 999, 1000])
def test_the_head_of_a_permutation_is_known_without_making_it(head: int) -> None:
    for seed in SEEDS:
        inside = set(torch.randperm(1000, generator=generator(seed))[:head].tolist())
        found = Permutation(seed, 1000, head)
        assert {value for value in range(1000) if found.holds(value)} == inside
