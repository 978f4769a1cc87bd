"""`SynthIdText` over random keys; texts of the original generator are in `test_original_texts.py`."""

import numpy as np
import pytest

from ttmark.shared.watermark.foreign import SynthIdText

KEYS = tuple(range(100, 120))
VOCABULARY = 500


def test_the_null_is_that_of_random_keys() -> None:
    generator = np.random.default_rng(1)
    text, layers = generator.integers(0, VOCABULARY, 120), 4
    keys = generator.integers(-(1 << 62), 1 << 62, size=(400, layers)).tolist()
    found = np.array([10 ** SynthIdText(tuple(each)).detect(text).log10_p for each in keys])
    for rate in (0.05, 0.2, 0.5):
        share = (found <= rate).mean()
        assert rate * 0.8 - 4 * np.sqrt(rate / found.size) < share < rate + 4 * np.sqrt(rate / found.size)


def test_repeats_do_not_count() -> None:
    text = list(range(20)) * 10
    assert SynthIdText(KEYS).detect(text).scored_tokens == 20
    assert SynthIdText(KEYS).detect([1, 2]).scored_tokens == 0


def test_bad_arguments_are_named() -> None:
    for arguments, words in [
        ({"keys": ()}, "keys"),
        ({"keys": (1 << 63,)}, "64 bits"),
        ({"ngram_len": 1}, "ngram_len"),
        ({"sampling_table_size": 1000}, "power of two"),
    ]:
        with pytest.raises(ValueError, match=words):
            SynthIdText(**{"keys": KEYS, **arguments})  # type: ignore[arg-type]
