"""Texts of too few tokens, or of just enough: no detector makes evidence of them."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from ttmark.shared.watermark.detectors.alignment import detect_aligned
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.detectors.localized import detect_localized
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

DETECTORS = {
    "direct": lambda *text: detect_direct(*text, phase="any"),
    "aligned": detect_aligned,
    "scan": detect_localized,
    "waterseeker": lambda *text: detect_localized(*text, method="waterseeker"),
}


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("scheme", scheme_names())
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_a_text_without_a_scored_position_has_p_value_one(scheme, block_size, detector):
    watermark = Watermark(scheme, block_size)
    for tokens in range(watermark.context_width + block_size):
        evidence = DETECTORS[detector](watermark, bytes(16), list(range(tokens)))
        assert (evidence.log10_p, evidence.scored_blocks) == (0.0, 0)
        assert getattr(evidence, "z", 0.0) == 0.0  # localized evidence has none


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("scheme", ["dipmark", "mcmark"])
def test_false_positives_of_the_one_scored_position_are_at_most_promised(scheme, detector):
    watermark, rng = Watermark(scheme, 1), np.random.default_rng(0)
    evidence = [DETECTORS[detector](watermark, rng.bytes(16), [1, 2, 3]) for _ in range(200)]
    assert {one.scored_blocks for one in evidence} == {1}
    log10_p = np.array([one.log10_p for one in evidence])
    for level in (0.3, 0.1, 0.01):
        found = int(np.sum(log10_p <= math.log10(level)))
        lower_99 = beta.ppf(0.005, found, 200 - found + 1) if found else 0.0
        assert lower_99 <= level
