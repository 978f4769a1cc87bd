"""`VllmGumbel` against texts of vLLM's own generator, judged by its own detector (tests/golden)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttmark.shared.watermark.foreign import VllmGumbel
from ttmark.shared.watermark.foreign.sglang_gumbel import log_weighted_gamma_tail
from ttmark.shared.watermark.nulls import log_gamma_tail

TEXTS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "golden" / "vllm-gumbel.json").read_text()
)["texts"]


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_scores_are_those_of_the_original_detector(number: int) -> None:
    text = TEXTS[number]
    mark = VllmGumbel(int(text["key"]), text["context_width"], text["alpha"])
    found = mark.detect(text["token_ids"])
    assert found.scored_tokens == text["scored_tokens"]
    assert found.score == pytest.approx(text["score"], rel=1e-12)
    if text["alpha"] in (None, 0.0, 0.5, 1.0):  # for others the original's p-value is an approximation
        assert found.log10_p == pytest.approx(np.log10(text["p_value"]), rel=1e-5)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.7])
def test_the_tail_of_two_weighted_keys_is_exact(alpha: float) -> None:
    generator = np.random.default_rng(3)
    sums = (1 - alpha) * generator.gamma(8, size=400_000) + alpha * generator.gamma(8, size=400_000)
    for threshold in np.quantile(sums, [0.5, 0.9, 0.99, 0.999]):
        rate = float((sums >= threshold).mean())
        spread = 5 * np.sqrt(rate / sums.size)
        assert np.exp(log_weighted_gamma_tail(threshold, 8, 1 - alpha, alpha)) == pytest.approx(
            rate, abs=spread
        )


def test_weights_that_are_nearly_alike_give_nearly_one_gamma_variable() -> None:
    for threshold in (5.0, 60.0, 2000.0):
        whole = log_gamma_tail(2 * threshold, 60)
        assert log_weighted_gamma_tail(threshold, 30, 0.5, 0.5) == pytest.approx(whole)
        assert log_weighted_gamma_tail(threshold, 30, 0.5 + 1e-9, 0.5 - 1e-9) == pytest.approx(
            whole, rel=1e-5
        )


@pytest.mark.parametrize("alpha", [None, 0.1])
def test_p_values_of_repetitive_texts_are_uniform_over_keys(alpha: float | None) -> None:
    generator = np.random.default_rng(5)
    text = np.tile(generator.integers(0, 50, 40), 8)[:300]
    keys = generator.integers(0, 1 << 63, size=600).tolist()
    found = np.array([10 ** VllmGumbel(key, 4, alpha).detect(text).log10_p for key in keys])
    for rate in (0.01, 0.1, 0.5):
        assert abs((found <= rate).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / found.size)


def test_nothing_is_said_of_no_tokens_and_bad_arguments_are_named() -> None:
    assert VllmGumbel(1).detect([]).log10_p == 0.0
    for arguments, words in [((-1,), "64"), ((1, 0), "context width"), ((1, 4, 0.001), "alpha")]:
        with pytest.raises(ValueError, match=words):
            VllmGumbel(*arguments)


def test_no_key_is_shown() -> None:
    assert "987654321" not in repr(VllmGumbel(987654321))
