"""Texts that lost characters are read with as many tokens as they had."""

from collections.abc import Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.random_model import byte_tokenizer
from tests.harness.trained_tokenizers import bpe_with_byte_fallback
from ttmark.gen_service.api.plan.watermark_report import scored
from ttmark.library import detection
from ttmark.library.key import Key
from ttmark.shared.tokenization import TextTokenizer, TooManyTokens
from ttmark.shared.unknown_tokens import read_ids, read_with_offsets
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest
from ttmark.shared.watermark.prf import UNKNOWN_TOKEN, key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark

FALLBACK = bpe_with_byte_fallback(["one two three, naïve café"] * 20, 300)
TEXT = "one एक दो तीन two चार पाँच three"
IDS = FALLBACK.encode(TEXT)
BYTES = [token for token in IDS if "\ufffd" in FALLBACK.backend.decode([token])]


@given(noise=st.lists(st.tuples(st.integers(1, len(IDS) - 1), st.sampled_from(BYTES)), max_size=6))
@settings(max_examples=300)
def test_every_token_that_is_left_has_its_place(noise: list[tuple[int, int]]) -> None:
    """The library's decoder writes U+FFFD for each byte beside one of no character."""
    ids = list(IDS)
    for place, token in noise:
        ids[place] = token if ids[place] in BYTES else ids[place]
    read = read_ids(FALLBACK, FALLBACK.backend.decode(ids))
    assert len(read) == len(ids)
    assert all(known in (token, UNKNOWN_TOKEN) for known, token in zip(read, ids, strict=True))
    assert read.count(UNKNOWN_TOKEN) == FALLBACK.backend.decode(ids).count("\ufffd")


@pytest.mark.parametrize("tokenizer", [FALLBACK, TextTokenizer(byte_tokenizer())])
@pytest.mark.parametrize(
    "text", ["\ufffd", "a\ufffd\ufffd\ufffdb", "fox \ufffd fox\ufffd", "no\ufffd🦊\ufffd"]
)
def test_tokens_and_places_are_those_of_the_text(tokenizer: TextTokenizer, text: str) -> None:
    found, unknown = read_with_offsets(tokenizer, text), text.count("\ufffd")
    assert found.ids == read_ids(tokenizer, text)
    lost = [span for token, span in zip(found.ids, found.offsets, strict=True) if token == UNKNOWN_TOKEN]
    assert [text[start:end] for start, end in lost if text[start:end] != " "] == ["\ufffd"] * unknown
    with pytest.raises(TooManyTokens):
        read_ids(tokenizer, text, len(found.ids) - 1)


def _written(watermark: Watermark, prf_key: bytes, tokens: int) -> list[int]:
    """Marked words of three characters of three bytes, a token each, the last of which is open."""
    first, second, *last = (
        FALLBACK.backend.token_to_id(f"<0x{byte:02X}>") for byte in (0xE0, 0xA4, *range(0x95, 0xB5))
    )
    blank, generator = FALLBACK.backend.token_to_id("▁"), np.random.default_rng(1)
    follows = [[blank], *[[first], [second], last] * 3]
    tracker, lanes = watermark.tracker(), key_lanes(prf_key)[None]
    written: list[int] = []
    while len(written) < tokens:
        at = len(written)
        blocks = np.array([*product(*(follows[(at + number) % 10] for number in range(2)))])
        probs = np.full(len(blocks), 1 / len(blocks))
        context = tracker.next_context(written)
        if context is not None:
            offsets = np.array([0, len(blocks)])
            probs = watermark.reweight(lanes, np.array([context]), blocks, probs, offsets)
        written += blocks[generator.choice(len(blocks), p=probs / probs.sum())].tolist()
    return written


def test_a_text_that_lost_characters_keeps_its_evidence_and_the_receipt_says_so() -> None:
    generator, prf_key = np.random.default_rng(2), bytes(range(16))
    ((profile, _),) = Key.new().variants(FALLBACK.fingerprint)
    watermark = profile.watermark()
    ids = _written(watermark, prf_key, 400)
    for place in generator.integers(10, 390, 10):
        ids[place] = int(generator.choice(ids))
    text, tried = FALLBACK.backend.decode(ids), [(FALLBACK, (profile, [prf_key]))]
    assert 8 < text.count("\ufffd") < 80

    def read(tokens: Sequence[int]) -> np.ndarray[Any, Any]:
        assert max(tokens) < FALLBACK.vocab_size
        return np.full(len(tokens), -1.0)

    found, of_ids = (detection._find(one, tried, 1e-5, None) for one in (text, ids))
    assert found.tokens == of_ids.tokens
    assert found.log10_p < 0.95 * of_ids.log10_p < -9
    assert detection._find(text, tried, 1e-5, read).verdict == "watermarked"
    request: Any = SimpleNamespace(marking=SimpleNamespace(watermark=watermark, prf_key=prf_key))
    said = scored(request, text, FALLBACK)
    assert said == detect_direct(watermark, prf_key, read_ids(FALLBACK, text), phase="any").log10_p


def test_blocks_of_lost_characters_say_nothing() -> None:
    watermark = Watermark("gumbel", 2, 2)
    text = np.array([5, 6, 7, UNKNOWN_TOKEN, 8, 9, 10, 11, 12])
    found = LikelihoodTest(watermark, text).under([bytes(16)])
    assert (found.positions, found.scored) == (6, 2)
    nothing = LikelihoodTest(watermark, [UNKNOWN_TOKEN] * 99).under([bytes(16)])
    assert (nothing.log10_e, nothing.log10_p, nothing.scored) == (pytest.approx(0), pytest.approx(0), 0)
