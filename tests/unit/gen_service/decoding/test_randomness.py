"""Counter-based draws of one request."""

import pytest
from scipy.stats import kstest

from ttmark.gen_service.decoding.randomness import Draw, Draws


def test_a_draw_depends_on_the_seed_and_its_counters_alone_and_every_counter_matters() -> None:
    draws = Draws(5)
    first = draws.uniform(3, Draw.BLOCK)
    draws.uniform(9, Draw.TAIL, 2)
    assert draws.uniform(3, Draw.BLOCK) == first
    assert Draws(5).uniform(3, Draw.BLOCK) == first
    draws = Draws(5)
    values = {draws.uniform(p, purpose, level) for p in range(20) for purpose in Draw for level in range(3)}
    assert len(values) == 20 * len(Draw) * 3
    assert Draws(6).uniform(0, Draw.TOKEN) not in values


@pytest.mark.parametrize("seed", [0, -1, 2**63 - 1, -(2**63), 2**64])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    assert 0.0 <= Draws(seed).uniform(0, Draw.TOKEN) < 1.0


def test_draws_are_uniform() -> None:
    draws = Draws(11)
    assert kstest([draws.uniform(p, Draw.TOKEN) for p in range(20_000)], "uniform").pvalue > 0.001
