"""Scores of any text are independent draws of the null, so drawn decoys stand for hashed ones."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from ttmark.shared.watermark.detectors.alignment import DECOYS, aligned_scores, decoy_log10_p, decoy_scores
from ttmark.shared.watermark.detectors.block_scores import context_and_block
from ttmark.shared.watermark.detectors.scan import best_scores
from ttmark.shared.watermark.prf import occurrence_numbers
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

TEXTS = {
    "constant": np.full(60, 7),
    "loop": np.tile([5, 6, 7], 25),
    "one context, many blocks": np.array([1, 1, 2] * 20 + [1, 1, 3] * 10),
    "prose-like": np.random.default_rng(0).zipf(1.5, 80).clip(max=1000),
}


def hashed_decoys(watermark, text, rng):
    """Scores of all positions [positions, DECOYS] under random keys, as `position_scores` gives them."""
    starts = np.arange(watermark.context_width, text.size - watermark.block_size + 1)
    contexts, blocks = context_and_block(watermark, text, starts)
    occurrences = occurrence_numbers(np.concatenate([contexts, blocks], axis=1))
    keys = np.tile(rng.integers(-(2**63), 2**63 - 1, (DECOYS, 2)), (starts.size, 1))
    rows = np.repeat(np.arange(starts.size), DECOYS)
    scores = watermark.score(keys, contexts[rows], blocks[rows], occurrences[rows])
    return watermark.standardize(scores).reshape(starts.size, DECOYS)


@pytest.mark.parametrize("scheme", scheme_names())
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_hashed_and_drawn_decoys_agree_in_distribution(scheme, text):
    watermark = Watermark(scheme, 2)
    hashed = hashed_decoys(watermark, text, np.random.default_rng(1))
    drawn = np.concatenate(list(decoy_scores(watermark, bytes(16), text, hashed.shape[0])))
    for statistic in (
        lambda scores: aligned_scores([scores], 2, 5.0, DECOYS),
        lambda scores: best_scores([scores], 2, DECOYS),
        lambda scores: scores.sum(axis=0),
    ):
        assert ks_2samp(statistic(hashed), statistic(drawn)).pvalue > 0.001


@pytest.mark.parametrize("layers", [1, 5])
def test_three_blocks_under_one_context_hit_the_target_independently(layers):
    watermark = Watermark("mcmark", 1, 2, {"layers": layers, "channels": 2})
    rng = np.random.default_rng(2)
    keys = np.repeat(rng.integers(-(2**63), 2**63 - 1, (20_000, 2)), 3, axis=0)
    contexts, blocks = np.tile([[8, 9]], (60_000, 1)), np.tile([[1], [2], [3]], (20_000, 1))
    hits = watermark.score(keys, contexts, blocks).reshape(20_000, 3) / layers
    # Eight cells of the joint outcome "at least half of the layers hit" against the product.
    joint = np.bincount((hits >= 0.5) @ [1, 2, 4], minlength=8) / 20_000
    single = (hits >= 0.5).mean()
    expected = [single ** bin(i).count("1") * (1 - single) ** (3 - bin(i).count("1")) for i in range(8)]
    assert np.allclose(joint, expected, atol=4 * 0.5 / np.sqrt(20_000))


def test_decoys_of_a_text_are_the_same_on_every_replica_and_differ_between_texts_and_keys():
    watermark = Watermark("synthid", 2)

    def draw(key, tokens):
        return np.concatenate(list(decoy_scores(watermark, key, np.asarray(tokens), 300)))

    first = draw(bytes(16), [1, 2, 3])
    assert np.array_equal(first, draw(bytes(16), [1, 2, 3]))
    assert not np.array_equal(first, draw(bytes(16), [1, 2, 4]))
    assert not np.array_equal(first, draw(bytes(15) + b"1", [1, 2, 3]))
    assert first[0, :3] == pytest.approx([-2.1908902300206643, 1.0954451150103321, -0.7302967433402214])


def test_decoy_p_value_counts_the_text_itself():
    decoys = np.arange(999.0)
    assert decoy_log10_p(2000.0, decoys) == -3.0
    assert decoy_log10_p(-1.0, decoys) == 0.0
    assert 10 ** decoy_log10_p(989.0, decoys) == pytest.approx(11 / 1000)
