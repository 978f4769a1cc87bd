"""The three detectors as one question: shares of the rate, and false positives of their combination."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ttmark.evaluation.core.rates import lower_bound
from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized
from ttmark.shared.watermark.detectors.combined import Shares


@pytest.mark.parametrize("phases", [1, 2, 3])
def test_the_shares_are_positive_and_sum_to_one(phases: int) -> None:
    shares = Shares.of(phases)
    every = [*shares.phases, shares.aligned, shares.localized]
    assert min(every) > 0
    assert sum(every) == pytest.approx(1.0, abs=1e-15)
    assert sum(1 / factor for factor in shares.factors()) == pytest.approx(1.0)


@pytest.mark.parametrize("phases", [2, 3])
def test_a_whole_text_and_passages_pay_twice_what_one_detector_asks(phases: int) -> None:
    nothing = [0.0] * phases
    whole = Shares.of(phases).log10_p([-9.0, *nothing[1:]], 0.0, 0.0)
    assert whole == pytest.approx(-9.0 + np.log10(phases) + np.log10(2))
    assert Shares.of(phases).log10_p(nothing, 0.0, -9.0) == pytest.approx(-9.0 + np.log10(2))


def test_nothing_is_more_than_certain() -> None:
    assert Shares.of(2).log10_p([-0.1, 0.0], -0.2, 0.0) == 0.0


@pytest.mark.parametrize("scheme", ["synthid", "gumbel"])
def test_texts_without_a_watermark_are_found_at_most_at_the_rate(scheme: str) -> None:
    generator = np.random.default_rng(11)
    watermark, texts = Watermark(scheme, 2), 400
    log10_p = np.array([_log10_p(watermark, generator.bytes(16), _text(generator)) for _ in range(texts)])
    for level in (0.1, 0.01):
        hits = int((log10_p <= np.log10(level)).sum())
        assert lower_bound(hits, texts) <= level
    assert (log10_p <= -1.0).sum() > 0.02 * texts  # the promise is not kept by finding nothing


def _text(generator: np.random.Generator) -> NDArray[np.int64]:
    tokens = generator.integers(50_000, size=60)
    return np.concatenate([tokens, tokens[: generator.integers(40)]])  # repeated contexts


def _log10_p(watermark: Watermark, key: bytes, tokens: NDArray[np.int64]) -> float:
    phases = [detect_direct(watermark, key, tokens, phase=phase).log10_p for phase in range(2)]
    aligned = detect_aligned(watermark, key, tokens).log10_p
    localized = detect_localized(watermark, key, tokens).log10_p
    return Shares.of(2).log10_p(phases, aligned, localized)
