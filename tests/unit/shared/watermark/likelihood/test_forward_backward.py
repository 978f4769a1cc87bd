"""Forward, backward and draws, compiled and not, beside the enumeration of all paths and of all texts."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.unit.shared.watermark.likelihood.conftest import compiled, enumerated, random_chain
from ttmark.shared.watermark.likelihood.forward_backward import Passes, log10_mean, log10_of
from ttmark.shared.watermark.likelihood.forward_backward_numpy import NumpyPasses
from ttmark.shared.watermark.likelihood.hidden_markov_model import (
    MOST_PATHS,
    MarkovChain,
    Mixtures,
    Path,
    Ratios,
    as_table,
    drawn_paths,
    evidence_paths,
)
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

PATHS = (
    Path(0, 0.06),
    Path(1, 0.3, enter=0.2, find=0.05, lose=0.4, away=0.7),
    Path(0, 0.1, by_surprise=True),
    Path(2, 0.2, find=0.2, away=1.0, by_surprise=True),
)


def tiny(mixtures: Mixtures) -> Ratios:
    """A scheme whose scores have three values."""
    return Ratios.of(Watermark("dipmark", 2, 2, {"layers": 2}), mixtures)


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_forward_is_the_sum_over_all_paths(passes: Passes, mixtures: Mixtures, tokens: int) -> None:
    ratios = Ratios.of(Watermark("gumbel", 2), mixtures)
    chain = random_chain(ratios, 8, tokens, PATHS, seed=tokens)
    cells = np.random.default_rng(1).integers(0, 384, (2, 8)).astype(np.uint16)
    found = 10 ** log10_of(*passes.forward(chain, cells))
    for number, path in enumerate(PATHS):
        for row in range(2):
            expected = math.fsum(mass for mass, _ in enumerated(chain, path, cells[row]))
            assert found[number, row] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_the_mean_of_e_over_every_text_without_the_mark_is_one(
    passes: Passes, mixtures: Mixtures, tokens: int
) -> None:
    """All 3**7 texts of scores, each with its chance; whatever the reader says, along any path."""
    ratios = tiny(mixtures)
    chain = random_chain(ratios, 7, tokens, (*PATHS, *evidence_paths(True), *drawn_paths(7)), seed=tokens)
    texts = np.array(list(itertools.product(range(3), repeat=7)), dtype=np.uint16)
    chances = ratios.null[texts].prod(axis=1)
    e = 10 ** log10_of(*passes.forward(chain, texts))  # [paths, texts]
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.abs(e @ chances - 1.0).max() < 1e-12


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_the_posterior_is_the_share_of_paths(passes: Passes, mixtures: Mixtures, tokens: int) -> None:
    ratios = Ratios.of(Watermark("synthid", 2), mixtures)
    chain = random_chain(ratios, 8, tokens, PATHS, seed=tokens)
    row = np.random.default_rng(2).integers(0, 31, 8).astype(np.uint16)
    for number, path in enumerate(PATHS):
        begins, apart, total, exponent = passes.posterior(chain, number, row)
        every = enumerated(chain, path, row)
        whole = math.fsum(mass for mass, _ in every)
        assert total * 2.0**exponent == pytest.approx(whole, rel=1e-12)
        for at in range(8):
            expected = math.fsum(mass for mass, done in every if done[at] == "begin") / whole
            assert begins[at] == pytest.approx(expected, rel=1e-10)
            expected = math.fsum(mass for mass, done in every if done[at] == "away") / whole
            assert apart[at] == pytest.approx(expected, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("name", scheme_names())
@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_compiled_passes_give_the_bits_of_numpy(name: str, tokens: int, mixtures: Mixtures) -> None:
    kernels, reference = compiled(), NumpyPasses()
    ratios = Ratios.of(Watermark(name, 2), mixtures)
    paths = (*evidence_paths(True), *drawn_paths(150), *PATHS)
    chain = random_chain(ratios, 150, tokens, paths, seed=tokens)
    along = np.random.default_rng(3).integers(-1, len(paths), 37)
    cells = kernels.draw(chain, 2**63 + 5, 3, along)
    assert np.array_equal(cells, reference.draw(chain, 2**63 + 5, 3, along))
    for found, expected in zip(kernels.forward(chain, cells), reference.forward(chain, cells), strict=True):
        assert np.array_equal(found, expected)
    for path in (0, 9, len(paths) - 1):
        answers = zip(
            kernels.posterior(chain, path, cells[4]), reference.posterior(chain, path, cells[4]), strict=True
        )
        assert all(np.array_equal(found, expected) for found, expected in answers)


def test_a_row_has_the_same_bits_among_any_others(passes: Passes, mixtures: Mixtures) -> None:
    ratios = Ratios.of(Watermark("gumbel", 2), mixtures)
    chain = random_chain(ratios, 90, 2, evidence_paths(True), seed=1)
    cells = passes.draw(chain, 1, 0, np.arange(-1, 12))
    sums, exponents = passes.forward(chain, cells)
    for row in (0, 7, 8, 12):
        alone = passes.forward(chain, cells[row : row + 1])
        assert np.array_equal(alone[0][:, 0], sums[:, row])
        assert np.array_equal(alone[1][:, 0], exponents[:, row])


def test_a_text_number_gives_the_same_text_in_any_run(passes: Passes, mixtures: Mixtures) -> None:
    chain = random_chain(tiny(mixtures), 40, 2, PATHS, seed=2)
    along = np.array([-1, 0, 1, 2, 3, 0])
    whole = passes.draw(chain, 9, 100, along)
    assert np.array_equal(passes.draw(chain, 9, 103, along[3:]), whole[3:])
    assert not np.array_equal(passes.draw(chain, 10, 100, along), whole)


def test_evidence_far_beyond_the_range_of_a_number_is_kept(passes: Passes, mixtures: Mixtures) -> None:
    ratios = Ratios.of(Watermark("gumbel", 2), mixtures)
    paths = as_table((Path(0, 1e-9, away=1e-9),))
    chain = MarkovChain.plain(ratios, 4_000, paths, 2)
    best = np.zeros((1, 4_000), dtype=np.uint16)
    best[:, ::2] = 383
    found = float(log10_of(*passes.forward(chain, best))[0, 0])
    each = math.log10(ratios.ratios[0, 1, 383])
    assert found == pytest.approx(2_000 * each, abs=4)
    assert found > 400
    begins, apart, _, _ = passes.posterior(chain, 0, best[0])
    assert np.abs(begins[::2] - 1.0).max() < 0.1
    assert apart.max() < 0.1


def test_draws_have_the_density_that_the_forward_pass_says(passes: Passes, mixtures: Mixtures) -> None:
    """Mean of 1 over the density ratio is 1, and every text of a tiny scheme comes as often as it should."""
    ratios = tiny(mixtures)
    chain = random_chain(ratios, 5, 2, (PATHS[1],), seed=3)
    draws = 60_000
    cells = passes.draw(chain, 4, 0, np.zeros(draws, dtype=np.int64)).astype(np.int64)
    numbers = cells @ 3 ** np.arange(5)
    texts = np.array(list(itertools.product(range(3), repeat=5)), dtype=np.uint16)
    odds = 10 ** log10_of(*passes.forward(chain, texts))[0]
    expected = odds * ratios.null[texts].prod(axis=1) * draws
    counts = np.bincount(numbers, minlength=3**5)[texts.astype(np.int64) @ 3 ** np.arange(5)]
    common = expected > 5
    distance = float(np.sum((counts[common] - expected[common]) ** 2 / expected[common]))
    assert distance < common.sum() + 4 * math.sqrt(2 * common.sum())


def test_a_text_without_positions_says_nothing(passes: Passes, mixtures: Mixtures) -> None:
    chain = MarkovChain.plain(tiny(mixtures), 0, as_table(evidence_paths(False)), 2)
    assert log10_of(*passes.forward(chain, np.zeros((3, 0), dtype=np.uint16))).tolist() == [[0.0] * 3] * 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"surprise": np.zeros(3)}, "3 surprises for 4 positions"),
        ({"paths": as_table(PATHS[:1] * (MOST_PATHS + 1))}, "not 65"),
        ({"kinds": np.full(4, 99, dtype=np.uint8)}, "no table"),
    ],
)
def test_what_the_kernel_would_read_beyond_is_refused(
    change: dict[str, Any], message: str, mixtures: Mixtures
) -> None:
    parts: dict[str, Any] = {
        "kinds": np.ones(4, dtype=np.uint8),
        "surprise": np.zeros(4),
        "paths": as_table(PATHS),
    }
    with pytest.raises(ValueError, match=message):
        MarkovChain(tiny(mixtures), tokens=2, **{**parts, **change})


def test_the_logarithm_of_a_mean_does_not_overflow() -> None:
    values = np.array([[400.0, -400.0], [399.0, -400.0]])
    assert log10_mean(values) == pytest.approx([400 + math.log10(0.55), -400.0])


@pytest.mark.parametrize("positions", [1, 7, 150, 10**6])
def test_every_chance_of_a_path_is_one(positions: int) -> None:
    for path in (*evidence_paths(True), *drawn_paths(positions), *PATHS):
        chances = (path.leave, path.enter, path.find, path.lose, path.away)
        assert all(0 <= chance <= 1 for chance in chances), path
