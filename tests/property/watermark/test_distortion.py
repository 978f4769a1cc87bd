"""Distortion-freeness over random keys (paper, Section 3.2)."""

import numpy as np
import pytest
from scipy.stats import chisquare

from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

KEYS = 10_000
SUPPORTS = {
    "one block": np.array([1.0]),
    "two blocks": np.array([0.9, 0.1]),
    "ties": np.full(16, 1 / 16),
    "point mass, zeros and denormals": np.array([0.0, 1.0, 5e-324, 0.0, 1e-310]),
    "Zipf-like": 1 / np.arange(1, 41) ** 1.5 / np.sum(1 / np.arange(1, 41) ** 1.5),
}


def sampled_counts(watermark, probs, seed):
    """Blocks drawn from P_w, one per random key, under one context."""
    rng = np.random.default_rng(seed)
    size = probs.size
    keys = rng.integers(-(2**63), 2**63 - 1, (KEYS, 2))
    context = rng.integers(0, 50_000, (1, watermark.context_width))
    blocks = rng.integers(0, 50_000, (size, watermark.block_size))
    reweighted = watermark.reweight(
        keys,
        np.tile(context, (KEYS, 1)),
        np.tile(blocks, (KEYS, 1)),
        np.tile(probs, KEYS),
        np.arange(KEYS + 1) * size,
    ).reshape(KEYS, size)
    cumulative = np.cumsum(reweighted, axis=1)
    drawn = np.sum(cumulative < rng.random((KEYS, 1)) * cumulative[:, -1:], axis=1)
    return np.bincount(drawn, minlength=size)


def chi_square_p(counts, probs):
    """p-value of the counts, cells below five expected draws pooled."""
    expected = probs * counts.sum()
    small = expected < 5.0
    if small.any():
        counts = np.append(counts[~small], counts[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    keep = (expected > 0.0) | (counts > 0)
    if keep.sum() < 2:
        return 1.0
    return chisquare(counts[keep], np.maximum(expected[keep], 1e-9)).pvalue


@pytest.mark.parametrize("scheme", scheme_names())
@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("support", SUPPORTS.values(), ids=SUPPORTS.keys())
def test_blocks_over_random_keys_follow_the_model(scheme, block_size, support):
    counts = sampled_counts(Watermark(scheme, block_size), support, seed=block_size)
    assert chi_square_p(counts, support) > 0.001


@pytest.mark.parametrize("scheme", scheme_names())
def test_blended_layers_follow_the_model(scheme):
    support = SUPPORTS["Zipf-like"]
    counts = sampled_counts(Watermark(scheme, 2, parameters={"blend": 0.35}), support, seed=9)
    assert chi_square_p(counts, support) > 0.001
