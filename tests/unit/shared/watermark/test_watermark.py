"""The facade: validation, defaults, scores, p-values."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

SCHEMES = scheme_names()


def ragged_batch(block_size, context_width, seed=0):
    rng = np.random.default_rng(seed)
    lengths = [1, 2, 50, 1, 300]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    probs = np.concatenate([rng.dirichlet(np.full(n, 0.3)) for n in lengths])
    keys = rng.integers(-(2**63), 2**63 - 1, (5, 2))
    contexts = rng.integers(0, 2**32, (5, context_width))
    blocks = rng.integers(0, 2**32, (offsets[-1], block_size))
    return keys, contexts, blocks, probs, offsets


def test_the_four_schemes_are_known():
    assert SCHEMES == ("synthid", "dipmark", "mcmark", "gumbel")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_reweighted_segments_sum_to_one(scheme, block_size):
    watermark = Watermark(scheme, block_size)
    keys, contexts, blocks, probs, offsets = ragged_batch(block_size, watermark.context_width)
    weighted = watermark.reweight(keys, contexts, blocks, 3 * probs, offsets)  # in proportion is enough
    assert np.all(weighted >= 0.0)
    assert np.allclose(np.add.reduceat(weighted, offsets[:-1]), 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("scheme", "layers"), [("dipmark", 1), ("dipmark", 4), ("dipmark", 5), ("mcmark", 5)]
)
def test_a_scheme_gets_the_words_that_it_asks_for_and_no_others(monkeypatch, scheme, layers):
    watermark = Watermark(scheme, 2, None, {"layers": layers})
    kind, shapes = type(watermark._scheme), []
    monkeypatch.setattr(
        kind, "score", lambda _, words, __: shapes.append(words.shape) or np.zeros(len(words))
    )
    keys, contexts, blocks, _, _ = ragged_batch(2, watermark.context_width)
    watermark.score(keys[0], contexts, blocks[:5])
    assert shapes == [(5, watermark._scheme.word_count)]


def test_no_sequences_give_no_probabilities():
    empty = np.empty
    result = Watermark("mcmark", 2).reweight(
        empty((0, 2), int), empty((0, 2), int), empty((0, 2), int), empty(0), np.zeros(1, int)
    )
    assert result.shape == (0,)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks_needed_is_the_first_count_whose_best_score_reaches_the_level(scheme):
    watermark = Watermark(scheme, 2)
    for level in (-0.5, -5.0, -12.0, -300.0):
        needed = watermark.blocks_needed(level)
        assert watermark.log10_p_value(needed * watermark.null.maximum, needed) <= level
        if needed > 1:
            best = (needed - 1) * watermark.null.maximum
            assert watermark.log10_p_value(best, needed - 1) > level


def test_mcmark_tail_is_exact_where_the_normal_approximation_is_not():
    watermark = Watermark("mcmark", 2, parameters={"layers": 1, "channels": 20})
    exact = watermark.log10_p_value(30.0, 200)
    normal = math.log10(0.5 * math.erfc(watermark.z_score(30.0, 200) / math.sqrt(2)))
    assert exact == pytest.approx(math.log10(9e-8), abs=0.1)
    assert normal < exact - 2.5


def test_defaults_are_resolved_into_the_parameters():
    watermark = Watermark("synthid", 2, None, {"depth": 20})
    assert watermark.context_width == 4
    assert dict(watermark.parameters) == {"depth": 20, "blend": 1.0, "weighted": False}
    assert watermark.warmup_blocks == 2
    assert Watermark("mcmark", 3).warmup_blocks == 1


def test_whole_numbers_are_taken_for_real_parameters():
    assert Watermark("gumbel", 1, parameters={"blend": 1}).parameters["blend"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nosuch", 2), "unknown scheme 'nosuch'"),
        (("synthid", 0), "block_size"),
        (("synthid", 4), "block_size"),
        (("synthid", True), "block_size"),
        (("synthid", 2, 0), "context_width"),
        (("synthid", 2, 65), "context_width"),
        (("synthid", 2, 4, {"nosuch": 1}), "no parameter 'nosuch'"),
        (("synthid", 2, 4, {"depth": 2.5}), "must be int"),
        (("synthid", 2, 4, {"depth": True}), "must be int"),
    ],
)
def test_bad_arguments_give_a_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        Watermark(*arguments)
