"""Texts put together from remembered chunks have the tokens that the tokenizer gives to the whole."""

import pickle
import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH
from ttmark.shared import tokenization
from ttmark.shared.tokenization import ChunkedEncoder

LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = LLAMA.replace(r"\p{N}{1,3}", r"\p{N}")
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# What could be cut wrongly: white space of all kinds, marks, digits, apostrophes, a token with a name.
PIECES = [
    *" \t\n\r\x0b\x1c\x85\u00a0\u1680\u180e\u2003\u200b\u2028\u3000\ufeff",
    *["'s", "'LL", "word", "été", "é", "́", "12345", "١٢", "?!", "—", "漢字", "😀", "<|end|>", "\x00"],
    *("  ", " a", "\r\n", "İ", "ß", "\u1e9b\u0323"),
]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=40).map("".join)


def trained(pre_tokenizer: pre_tokenizers.PreTokenizer) -> Tokenizer:
    return Tokenizer.from_str(_trained(pickle.dumps(pre_tokenizer)))


@cache
def _trained(pre_tokenizer: bytes) -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pickle.loads(pre_tokenizer)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(read_human_texts(HUMAN_TEXTS_PATH)[:30], trainer)
    tokenizer.add_special_tokens(["<|end|>"])
    return str(tokenizer.to_str())


def split_by(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


@pytest.fixture(scope="module", params=["demo", "byte level", "gpt2", "llama", "qwen", "smollm"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    match request.param:
        case "demo":
            return Tokenizer.from_file(str(DEMO_MODEL_PATH / "tokenizer.json"))
        case "byte level":
            return trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
        case "smollm":
            digits = pre_tokenizers.Digits(individual_digits=True)
            byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
            return trained(pre_tokenizers.Sequence([digits, byte_level]))
        case "qwen":
            tokenizer = trained(split_by(QWEN))
            tokenizer.normalizer = normalizers.NFC()
            return tokenizer
        case pattern:
            return trained(split_by({"gpt2": GPT2, "llama": LLAMA}[pattern]))


@pytest.fixture(scope="module")
def encoder(tokenizer: Tokenizer) -> ChunkedEncoder:
    encoder = ChunkedEncoder.of(tokenizer)
    assert encoder is not None
    return encoder


@settings(max_examples=40)  # for each of six tokenizers
@given(text=TEXTS)
def test_any_text_has_the_tokens_of_the_whole(tokenizer, encoder, text):
    expected = tokenizer.encode(text, add_special_tokens=False).ids
    assert encoder.encode(text) == expected
    assert encoder.encode(text) == expected  # now that its words are known


def test_human_texts_have_the_tokens_of_the_whole(tokenizer: Tokenizer, encoder: ChunkedEncoder) -> None:
    for text in random.Random(1).sample(read_human_texts(HUMAN_TEXTS_PATH), 20):
        assert encoder.encode(text) == tokenizer.encode(text, add_special_tokens=False).ids


def test_what_is_remembered_is_bounded_and_stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenization, "_MOST_CHUNKS", 50)
    tokenizer = trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    encoder = ChunkedEncoder(tokenizer)
    for text in read_human_texts(HUMAN_TEXTS_PATH)[:20]:
        assert encoder.encode(text) == tokenizer.encode(text, add_special_tokens=False).ids
        assert len(encoder._known) <= 50
        assert len(encoder._older) <= 50


def with_token(token: AddedToken | str) -> Tokenizer:
    tokenizer = trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.add_tokens([token])
    return tokenizer


@pytest.mark.parametrize(
    "tokenizer_that",
    [
        lambda: trained(pre_tokenizers.ByteLevel(add_prefix_space=True)),
        lambda: trained(pre_tokenizers.Metaspace()),
        lambda: trained(split_by(r"\p{L}+ \p{L}+|\s+")),
        lambda: with_token(AddedToken("<mask>", lstrip=True)),
        lambda: with_token("of the"),
        lambda: Tokenizer(models.Unigram([("a", 0.0), ("▁", -1.0)])),
    ],
    ids=["adds a space", "metaspace", "unknown pattern", "stripping token", "token with a space", "unigram"],
)
def test_tokenizers_that_may_join_what_a_space_divides_are_asked_for_the_whole(tokenizer_that) -> None:
    assert ChunkedEncoder.of(tokenizer_that()) is None
