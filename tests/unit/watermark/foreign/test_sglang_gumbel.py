"""`SglangGumbel` against texts of SGLang's own selector, judged by its own detector (tests/golden)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttmark.shared.watermark.foreign import SglangGumbel
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES
from ttmark.shared.watermark.nulls import LN10

GOLDEN = Path(__file__).parents[3] / "golden" / "sglang-gumbel.json"
TEXTS: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["texts"]
RESULTS = ("token_ids", "score", "log_p")


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_scores_and_p_values_are_those_of_the_original_detector(number: int) -> None:
    text, scheme = TEXTS[number], FOREIGN_SCHEMES["sglang-gumbel"]
    mark = scheme.mark(*scheme.split({name: text[name] for name in text.keys() - set(RESULTS)}))
    found = mark.detect(text["token_ids"])
    assert found.score == pytest.approx(text["score"], rel=1e-12)
    assert found.log10_p == pytest.approx(text["log_p"] / LN10, rel=1e-5)
    assert found.log10_p < -5


@pytest.mark.parametrize("second", [False, True])
def test_p_values_of_repetitive_texts_are_uniform_over_keys(second: bool) -> None:
    generator = np.random.default_rng(5)
    text = np.tile(generator.integers(0, 50, 40), 8)[:300]
    keys = generator.integers(0, 1 << 63, size=(800, 2)).tolist()
    marks = [SglangGumbel(first, other if second else None) for first, other in keys]
    found = np.array([10 ** mark.detect(text).log10_p for mark in marks])
    for rate in (0.01, 0.1, 0.5):
        assert abs((found <= rate).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / found.size)


def test_the_first_tokens_and_short_texts_are_not_scored() -> None:
    mark = SglangGumbel(1)
    assert [mark.detect(list(range(length))).scored_tokens for length in (0, 4, 5, 9)] == [0, 0, 1, 5]
    assert "1" not in repr(SglangGumbel(1111, 1111)).replace("context_window=4", "")


def test_bad_arguments_are_named() -> None:
    for arguments, words in [((-1,), "hexadecimal"), ((1, None, 65), "window"), ((1, 2, 4, 1.0), "mixing")]:
        with pytest.raises(ValueError, match=words):
            SglangGumbel(*arguments)  # type: ignore[arg-type]
