"""Aligned detection: power after edits, sound p-values, odd inputs."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark.detectors.alignment import BETA, detect_aligned, needs_decoys
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

KEY, OTHER_KEY = bytes(range(16)), bytes(range(1, 17))


@pytest.mark.parametrize("scheme", scheme_names())
def test_text_with_deleted_tokens_is_found_where_direct_detection_fails(generate, scheme):
    watermark = Watermark(scheme, 2)
    tokens = generate(watermark, KEY, 300, seed=1)
    edited = [token for i, token in enumerate(tokens) if i not in (31, 100, 181)]
    assert detect_aligned(watermark, KEY, edited).log10_p <= -math.log10(1001)
    assert detect_aligned(watermark, KEY, edited).log10_p < detect_direct(watermark, KEY, edited).log10_p
    assert detect_aligned(watermark, OTHER_KEY, edited).log10_p > -3


def test_another_beta_than_the_tables_falls_back_to_decoys():
    tokens = np.random.default_rng(0).integers(0, 99, 100)
    evidence = detect_aligned(Watermark("synthid", 2), KEY, tokens, beta=2.0)
    assert 10**evidence.log10_p * 1001 == pytest.approx(round(10**evidence.log10_p * 1001), abs=1e-9)
    assert needs_decoys(Watermark("synthid", 2), 2.0, evidence.scored_blocks)


def test_a_text_longer_than_the_tables_last_row_needs_no_decoys():
    tokens = np.random.default_rng(0).integers(0, 30_000, 12_000)
    evidence = detect_aligned(Watermark("gumbel", 2), KEY, tokens)
    assert not needs_decoys(Watermark("gumbel", 2), BETA, evidence.scored_blocks)
    assert evidence.log10_p > -3


@pytest.mark.parametrize("beta", [-1.0, math.inf, math.nan])
def test_a_beta_that_is_no_price_is_refused(beta):
    with pytest.raises(ValueError, match="beta"):
        detect_aligned(Watermark("synthid", 2), KEY, [1] * 9, beta=beta)
