"""Closed forms of the schemes against brute force over all draws, and against slow loops."""

import itertools
import math

import numpy as np
import pytest

from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.schemes.dipmark import DiPmark
from ttmark.shared.watermark.schemes.gumbel import Gumbel
from ttmark.shared.watermark.schemes.mcmark import MCMark
from ttmark.shared.watermark.schemes.synthid import SynthID

PROBS = {
    "flat": [0.25, 0.25, 0.25, 0.25],
    "uneven": [0.55, 0.3, 0.1, 0.05],
    "point mass": [0.0, 1.0, 0.0, 0.0],
    "near point mass": [1 - 1e-12, 1e-12, 0.0, 0.0],
    "denormal": [5e-324, 0.5, 0.5, 1e-310],
    "sum above one": [0.1, 0.2, 0.3, 0.4 + 2e-16],
}


def reweight_all(scheme, probs, words, targets=None):
    """P_w of the same distribution for many draws at once: words [D, n, lanes] -> [D, n]."""
    draws, size, lanes = words.shape
    segments = Segments(np.arange(draws + 1) * size)
    flat = scheme.reweight(
        np.tile(np.asarray(probs), draws),
        words.reshape(draws * size, lanes),
        np.zeros((draws, 2), np.int64) if targets is None else targets,
        segments,
    )
    return flat.reshape(draws, size)


@pytest.mark.parametrize("probs", PROBS.values(), ids=PROBS.keys())
@pytest.mark.parametrize("weight", [1.0, 0.4])
def test_synthid_averages_to_the_model_over_all_bits(probs, weight):
    patterns = np.array(list(itertools.product(range(4), repeat=4)))  # two layers, four blocks
    words = np.stack([patterns, patterns], axis=2)
    reweighted = reweight_all(SynthID(depth=2, blend=weight), probs, words)
    assert np.all(reweighted >= 0.0)
    assert np.allclose(reweighted.mean(axis=0), probs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("probs", PROBS.values(), ids=PROBS.keys())
@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.01])
def test_dipmark_averages_to_the_model_over_all_orders(probs, alpha):
    orders = np.array(list(itertools.permutations(range(4))))
    pairs = np.array(list(itertools.product(orders, orders)))  # [D, 2, 4], two layers
    words = np.moveaxis(pairs, 1, 2) << 60
    reweighted = reweight_all(DiPmark(layers=2, alpha=alpha), probs, words)
    assert np.all(reweighted >= 0.0)
    # The running mass of a whole batch is rounded at about 1e-13.
    assert np.allclose(reweighted.mean(axis=0), probs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("probs", PROBS.values(), ids=PROBS.keys())
@pytest.mark.parametrize("channels", [2, 3])
def test_mcmark_averages_to_the_model_over_all_channels_and_targets(probs, channels):
    digits = channels**2  # two layers
    draws = np.array(list(itertools.product(range(digits), repeat=5)))
    if draws.shape[0] > 20_000:
        draws = np.concatenate([draws[:, :4], draws[:, 4:]], axis=1)
    words = np.stack([draws[:, :4], draws[:, :4]], axis=2) << 1
    targets = np.stack([draws[:, 4], draws[:, 4]], axis=1) << 1
    reweighted = reweight_all(MCMark(layers=2, channels=channels), probs, words, targets)
    assert np.all(reweighted >= 0.0)
    assert np.allclose(reweighted.mean(axis=0), probs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("probs", PROBS.values(), ids=PROBS.keys())
def test_gumbel_emits_the_winner_of_the_race(probs):
    cells = np.random.default_rng(0).integers(0, 2**52, (200, 4))
    words = np.stack([cells << 12, cells], axis=2)
    reweighted = reweight_all(Gumbel(), probs, words)
    for row, winners in zip(cells, reweighted, strict=True):
        times = [
            -math.log((cell + 0.5) / 2**52) / p if p > 1e-300 else math.inf
            for cell, p in zip(row.tolist(), probs, strict=True)
        ]
        assert winners.tolist() == [float(i == times.index(min(times))) for i in range(4)]


@pytest.mark.parametrize("scheme", [SynthID(), DiPmark(), MCMark(), Gumbel()], ids=lambda s: s.name)
def test_a_single_candidate_keeps_all_mass(scheme):
    words = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, (50, 1, scheme.word_count))
    assert np.allclose(reweight_all(scheme, [1.0], words), 1.0, rtol=1e-15)


@pytest.mark.parametrize("scheme", [SynthID(), DiPmark(), MCMark(), Gumbel()], ids=lambda s: s.name)
def test_candidates_without_mass_get_none(scheme):
    words = np.random.default_rng(2).integers(-(2**63), 2**63 - 1, (50, 4, scheme.word_count))
    reweighted = reweight_all(scheme, [0.0, 0.7, 0.0, 0.3], words)
    assert np.all(reweighted[:, [0, 2]] == 0.0)


def slow_mcmark_layer(probs, channels, target, count):
    """One layer in the paper's words, with Python loops."""
    mass = [sum(p for p, c in zip(probs, channels, strict=True) if c == j) for j in range(count)]
    total = sum(max(count * m - 1, 0) for m in mass)
    result = []
    for p, c in zip(probs, channels, strict=True):
        if c == target:
            factor = min(count, 1 / mass[c]) if mass[c] else 0.0
        elif total and mass[c]:
            factor = max(1 - count * mass[target], 0) / total * max(count * mass[c] - 1, 0) / mass[c]
        else:
            factor = 0.0
        result.append(p * factor)
    return result


def test_mcmark_layer_equals_the_slow_loop():
    rng = np.random.default_rng(3)
    for _ in range(50):
        probs = rng.dirichlet(np.full(6, 0.5))
        channels, target = rng.integers(0, 4, 6), int(rng.integers(0, 4))
        words = np.stack([channels, channels], axis=1)[None] << 1
        fast = reweight_all(MCMark(layers=1, channels=4), probs, words, np.full((1, 2), target << 1))
        assert np.allclose(fast[0], slow_mcmark_layer(probs.tolist(), channels.tolist(), target, 4))


@pytest.mark.parametrize("channels", [2, 3, 20, 256])
def test_channel_digits_are_uniform_base_digits_of_the_lanes(channels):
    scheme = MCMark(layers=5, channels=channels)
    words = np.random.default_rng(5).integers(-(2**63), 2**63 - 1, (20_000, 2))
    digits = np.array(scheme._digits(words))
    rest = int(words[0, 0]) % 2**64 >> 1
    for layer in range(5):
        assert digits[layer, 0] == rest % channels
        rest //= channels
    counts = np.array([np.bincount(row, minlength=channels) for row in digits])
    spread = (counts - 20_000 / channels) / math.sqrt(20_000 / channels)
    assert np.sum(spread**2) < 5 * channels + 5 * math.sqrt(10 * channels)


def test_mcmark_takes_more_layers_from_the_second_lane():
    scheme = MCMark(layers=10, channels=20)
    words = np.array([[0, 2 * 7]])
    assert [int(digit[0]) for digit in scheme._digits(words)] == [0] * 9 + [7]


def test_gumbel_score_never_exceeds_the_exact_exponential():
    words = np.array([[-(2**63), 0], [2**63 - 1, 0], [-1, 0], [0, 0]])
    scores = Gumbel().score(words, words)
    assert scores[0] == pytest.approx(math.log(2.0))
    assert scores[2] == 52 * math.log(2.0)
    assert scores[3] == 0.0


@pytest.mark.parametrize(
    "build",
    [
        lambda: SynthID(depth=0),
        lambda: SynthID(depth=65),
        lambda: SynthID(blend=0.0),
        lambda: SynthID(blend=math.nan),
        lambda: DiPmark(alpha=0.6),
        lambda: DiPmark(layers=0),
        lambda: MCMark(channels=1),
        lambda: MCMark(layers=16, channels=256),
        lambda: Gumbel(blend=1.5),
    ],
)
def test_parameters_out_of_range_are_refused(build):
    with pytest.raises(ValueError, match=r"must be|exceed"):
        build()
