"""Long texts are read in slices: as the whole where there is a place to cut, and no further than asked."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers

from tests.harness.worst_bodies import WORST_BODIES
from tests.unit.shared.test_chunked_encoding import GPT2, LLAMA, PIECES, QWEN, split_by, trained
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH
from ttmark.shared import tokenization
from ttmark.shared.tokenization import TextTokenizer, TooManyTokens, encode_whole

# Each ends where a slice may.
WORDS = st.lists(st.one_of(st.sampled_from([*PIECES, "漢字。", "a.b,c\n"]), st.text(max_size=3)), max_size=60)


@pytest.fixture(scope="module", params=[GPT2, LLAMA, QWEN], ids=["gpt2", "llama", "qwen"])
def tokenizer(request: pytest.FixtureRequest) -> TextTokenizer:
    return TextTokenizer(trained(split_by(request.param)))


@settings(max_examples=50)
@given(words=WORDS)
def test_a_text_that_is_cut_has_the_tokens_and_places_of_the_whole(tokenizer, words):
    text = "".join(f"{word} 漢字。x.y " for word in words)
    whole = tokenizer.backend.encode(text, add_special_tokens=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenization, "_SLICE", 64)
        assert tokenizer.encode(text) == whole.ids
        found = tokenizer.encode_with_offsets(text)
    assert (found.ids, found.offsets) == (whole.ids, whole.offsets)


def test_human_texts_are_cut_without_a_trace(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenization, "_SLICE", 200)
    for text in random.Random(1).sample(read_human_texts(HUMAN_TEXTS_PATH), 10):
        assert tokenizer.encode(text) == tokenizer.backend.encode(text, add_special_tokens=False).ids


@settings(max_examples=50)
@given(text=st.text(max_size=300))
def test_slices_are_the_text_and_none_is_long(tokenizer: TextTokenizer, text: str) -> None:
    encoder = tokenizer._chunks
    assert encoder is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenization, "_SLICE", 16)
        slices = list(encoder.slices(text))
    assert "".join(slices) == text
    assert max(map(len, slices)) <= 16


def test_an_added_token_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = TextTokenizer(trained(split_by(GPT2)))
    monkeypatch.setattr(tokenization, "_SLICE", 64)
    text = "word<|end|>" * 40 + " " + "漢字<|end|>a" * 40
    whole = tokenizer.backend.encode(text, add_special_tokens=False).ids
    end = tokenizer.backend.token_to_id("<|end|>")
    assert tokenizer.encode(text).count(end) >= whole.count(end) - 40  # where nothing else can be cut
    spaced = "word <|end|> " * 40
    assert tokenizer.encode(spaced) == tokenizer.backend.encode(spaced, add_special_tokens=False).ids


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of what a tokenizer is given to read at a time."""
    given: list[int] = []

    def counting(backend: Tokenizer, part: str) -> object:
        given.append(len(part))
        return encode_whole(backend, part)

    monkeypatch.setattr(tokenization, "encode_whole", counting)
    return given


@pytest.mark.parametrize("name", [name for name in WORST_BODIES if name not in ("token ids", "nested")])
def test_reading_ends_soon_after_the_limit(name: str, sizes: list[int]) -> None:
    inputs = json.loads(WORST_BODIES[name](2**20))["inputs"]
    text = " ".join(document["text"] for document in inputs)
    with pytest.raises(TooManyTokens):
        TextTokenizer(trained(split_by(GPT2))).encode(text, 1_000)
    assert 0 < sum(sizes) <= 3 * tokenization._SLICE


def test_a_tokenizer_that_cannot_cut_reads_pieces_first(sizes: list[int]) -> None:
    tokenizer = TextTokenizer(trained(pre_tokenizers.ByteLevel(add_prefix_space=True)))
    assert tokenizer._chunks is None
    text = "a river and a town " * 20_000
    with pytest.raises(TooManyTokens):
        tokenizer.encode(text, 10_000)
    assert 0 < max(sizes) <= 16_384
    assert tokenizer.encode(text, 400_000) == tokenizer.backend.encode(text, add_special_tokens=False).ids
