"""Direct detection: power under the right key, honesty under any other, odd inputs."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

KEY, OTHER_KEY = bytes(range(16)), bytes(range(1, 17))


@pytest.mark.parametrize("scheme", scheme_names())
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_watermarked_text_is_found_under_its_key_alone(generate, scheme, block_size):
    watermark = Watermark(scheme, block_size)
    tokens = generate(watermark, KEY, 120, seed=1)
    assert detect_direct(watermark, KEY, tokens).log10_p < -5
    assert detect_direct(watermark, OTHER_KEY, tokens).log10_p > -3


def test_cut_text_is_found_by_trying_all_phases_and_pays_for_it(generate):
    watermark = Watermark("synthid", 2)
    tokens = generate(watermark, KEY, 200, seed=3)[1:]
    shifted = detect_direct(watermark, KEY, tokens, phase=1)
    best = detect_direct(watermark, KEY, tokens, phase="any")
    assert detect_direct(watermark, KEY, tokens).log10_p > -2
    assert best.phase == 1
    assert best.hypotheses == 2
    assert best.log10_p == pytest.approx(shifted.log10_p + math.log10(2))


@pytest.mark.parametrize("tokens", [[-1] * 9, [2**32 - 1] * 9, [2**70] * 9, [[1, 2], [3, 4]]])
def test_what_cannot_be_a_token_is_refused(tokens):
    with pytest.raises(ValueError, match="tokens must be"):
        detect_direct(Watermark("synthid", 2), KEY, tokens)


@pytest.mark.parametrize("phase", [-1, 2])
def test_a_phase_outside_the_block_is_refused(phase):
    with pytest.raises(ValueError, match="phase"):
        detect_direct(Watermark("synthid", 2), KEY, [1] * 9, phase=phase)


def unwatermarked_texts(count, rng):
    """Prose-like, list-like, looping and constant token sequences of 0 to 400 tokens."""
    for index in range(count):
        length = int(rng.integers(0, 400))
        kind = index % 4
        if kind == 0:
            yield rng.zipf(1.3, length).clip(max=50_000)
        elif kind == 1:
            yield np.tile(rng.integers(0, 50_000, rng.integers(1, 51)), length)[:length]
        elif kind == 2:
            yield np.full(length, rng.integers(0, 50_000))
        else:
            yield rng.integers(0, 4, length)


@pytest.mark.parametrize("scheme", scheme_names())
@pytest.mark.parametrize("phase", [0, "any"])
def test_false_positive_rate_is_at_most_promised(scheme, phase):
    """With 1,000 texts it fails from found shares of 0.126, 0.02 and 0.005 on, for 0.1, 0.01 and 0.001."""
    watermark, rng, texts = Watermark(scheme, 2), np.random.default_rng(0), 1_000
    log10_p = np.array(
        [
            detect_direct(watermark, rng.bytes(16), tokens, phase=phase).log10_p
            for tokens in unwatermarked_texts(texts, rng)
        ]
    )
    for level in (0.1, 0.01, 0.001):
        found = int(np.sum(log10_p <= math.log10(level)))
        lower_99 = beta.ppf(0.005, found, texts - found + 1) if found else 0.0
        assert lower_99 <= level
