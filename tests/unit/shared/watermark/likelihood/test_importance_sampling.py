"""The p-value from draws: valid for any number of them, the same when asked again, as sharp as promised."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark.likelihood.forward_backward import find_passes
from ttmark.shared.watermark.likelihood.hidden_markov_model import (
    MarkovChain,
    Ratios,
    as_table,
    evidence_paths,
)
from ttmark.shared.watermark.likelihood.importance_sampling import NullTail, Sampler
from ttmark.shared.watermark.schemes.watermark import Watermark
from ttmark.shared.watermark.score_distributions import Cells

PASSES = find_passes()


def chain(name: str = "gumbel", positions: int = 120) -> MarkovChain:
    ratios = Ratios.of(Watermark(name, 2))
    return MarkovChain.plain(ratios, positions, as_table(evidence_paths(False)), 2)


def without_mark(text: MarkovChain, rows: int, seed: int) -> Cells:
    words = np.random.default_rng(seed).integers(0, 2**64, (rows, text.positions), dtype=np.uint64)
    return np.searchsorted(text.ratios.limits[0, 0, :-1], words, side="right").astype(np.uint16)


def rates_over(draws: int, *, sets: int, level: float) -> float:
    """How often a text without the mark has p <= level, over texts and sets of so many draws."""
    text = chain()
    cells, first = without_mark(text, 4_000, 11), Sampler.of(PASSES, text)
    e, odds = first.evidence_and_odds(first.along(cells))
    tails = (NullTail.of(first, seed, draws) for seed in range(sets))
    return float(np.mean([np.mean(tail.log10_p_of(e, odds) <= math.log10(level)) for tail in tails]))


@pytest.mark.parametrize("draws", [1, 3, 10, 100])
def test_a_p_value_holds_for_any_number_of_draws(draws: int) -> None:
    for level in (0.3, 0.1, 0.01):
        assert rates_over(draws, sets=60, level=level) < level * 1.05 + 0.002


def test_many_draws_are_sharp_where_one_over_e_is_not() -> None:
    text = chain()
    cells = without_mark(text, 20_000, 12)
    tail = NullTail.draw(PASSES, text, -2.0, seed=5)
    log10_p = tail.log10_p(cells)
    e, _ = tail.sampler.evidence_and_odds(tail.sampler.along(cells))
    assert 0.7 < np.mean(log10_p <= -2.0) / 0.01 < 1.35
    assert np.mean(e >= 2.0) < 0.1 * 0.01


@pytest.mark.parametrize("name", ["gumbel", "synthid", "mcmark", "dipmark"])
@pytest.mark.parametrize("positions", [30, 300])
def test_sets_of_draws_agree_about_a_small_p_value(name: str, positions: int) -> None:
    """The standard error is to be about a tenth of p, where that can be had."""
    text = chain(name, positions)
    tails = [NullTail.draw(PASSES, text, -5.0, seed=seed) for seed in range(8)]
    at = float(
        np.median(
            [tail.log10_e[np.searchsorted(tail.log10_sums, -5 + math.log10(tail.draws))] for tail in tails]
        )
    )
    found = [float(tail.log10_p_of(np.array([at]), np.array([at + 1]))[0]) for tail in tails]
    assert np.std(found) < 0.12
    assert abs(np.mean(found) + 5.0) < 0.25


def test_draws_have_the_density_that_their_weights_say() -> None:
    """The mean of the weights is 1, before and after the pilot changed the shares."""
    text = chain(positions=60)
    first = Sampler.of(PASSES, text)
    fitted, _ = first.fitted(first.along(first.draw(1, 0, 400)), -4.0)
    assert not np.allclose(first.shares, fitted.shares)
    for sampler in (first, fitted):
        _, odds = sampler.evidence_and_odds(sampler.along(sampler.draw(3, 0, 20_000)))
        weights = 10.0**-odds
        assert weights.max() < 10.01
        assert abs(weights.mean() - 1.0) < 4 * weights.std() / math.sqrt(weights.size)


def test_more_evidence_never_has_a_larger_p_value_and_beyond_the_draws_it_falls_as_one_over_e() -> None:
    tail = NullTail.draw(PASSES, chain(), -3.0, seed=1)
    e = np.linspace(-2.0, 30.0, 400)
    found = tail.log10_p_of(e, e)
    assert np.all(np.diff(found) <= 1e-12)
    assert found[-1] < -29
    tail = NullTail.draw(PASSES, chain(), -3.0, seed=1)
    e = tail.log10_e[0] + np.array([1.0, 5.0])
    found = tail.log10_p_of(e, e + 20)
    assert found[1] == pytest.approx(found[0] - 4.0)
    assert found == pytest.approx(tail.log10_p_of(e, e + 40))
    assert found[0] > -e[0] - 20


def test_a_long_text_is_drawn_for_at_bounded_cost() -> None:
    tail = NullTail.draw(PASSES, chain(positions=100_000), -5.0, seed=1)
    assert tail.draws == 32
