"""`Kgw` against transformers' own processor; its detector is asked in `test_original_texts.py`."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import WatermarkLogitsProcessor

from tests.unit.shared.watermark.conftest import Counting
from ttmark.shared.watermark.foreign import Kgw, kgw
from ttmark.shared.watermark.interruption import interruptible

VOCABULARY = 2000


@pytest.mark.parametrize("scheme", ["lefthash", "selfhash"])
def test_wider_contexts_that_share_a_seed_are_one_draw(scheme: Any) -> None:
    """The original counts a token under one seed as often as the tokens before it differ."""
    arguments = {"seeding_scheme": scheme, "context_width": 3, "hashing_key": 7}
    processor = WatermarkLogitsProcessor(VOCABULARY, "cpu", **arguments)
    tokens = np.random.default_rng(1).integers(2, 9, 60).tolist()
    drawn = {}
    for end in range(3 if scheme == "lefthash" else 2, len(tokens)):
        prefix = tokens[end - 3 : end] if scheme == "lefthash" else tokens[end - 2 : end + 1]
        green = tokens[end] in processor._get_greenlist_ids(torch.tensor(prefix))
        drawn[processor.rng.initial_seed() & 0xFFFFFFFF, tokens[end]] = green
    found = Kgw(VOCABULARY, **arguments).detect(tokens)
    assert (found.score, found.scored_tokens) == (sum(drawn.values()), len(drawn))


def test_green_lists_are_made_with_pauses_between_them() -> None:
    """Each takes a third of a millisecond with the vocabularies of today."""
    counting = Counting()
    with interruptible(counting):
        Kgw(VOCABULARY).detect(range(400))
    assert counting.pauses >= 20


@pytest.mark.parametrize("scheme", ["lefthash", "selfhash"])
def test_p_values_of_texts_that_repeat_or_are_made_for_it_keep_their_promise_over_keys(
    scheme: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(2)
    # One costs a second. Of each a few places are read: that values may come twice is not seen.
    monkeypatch.setattr(kgw, "_hash_table", lambda _: generator.integers(0, 1_000_003, size=1_000_003))
    keys, repetitive = generator.integers(1, 1 << 31, size=200).tolist(), generator.zipf(1.5, size=120) % 60
    green = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(0))[:40].tolist()
    made = np.array([token for one in green for token in (0, one)])  # green after token 0 under every key
    for text in (repetitive, made):
        found = np.array([10 ** Kgw(VOCABULARY, key, 0.25, scheme).detect(text).log10_p for key in keys])
        for rate in (0.05, 0.2, 0.5):
            assert np.mean(found <= rate) < rate + 4 * np.sqrt(rate / found.size)
        assert np.mean(found <= 0.5) > 0.2


def test_bad_arguments_and_tokens_are_named() -> None:
    for arguments, words in [
        ({"vocab_size": 1}, "vocab_size"),
        ({"vocab_size": (1 << 20) + 1}, "vocab_size"),
        ({"hashing_key": 0}, "hashing_key"),
        ({"greenlist_ratio": 1.0}, "green share"),
        ({"seeding_scheme": "righthash"}, "seeding scheme"),
        ({"context_width": 0}, "context width"),
    ]:
        with pytest.raises(ValueError, match=words):
            Kgw(**{"vocab_size": VOCABULARY, **arguments})  # type: ignore[arg-type]
    assert Kgw(VOCABULARY).detect([1, VOCABULARY]).scored_tokens == 0
    assert Kgw(VOCABULARY).detect([5]).scored_tokens == 0
