"""The tokenizer that both services share."""

from pathlib import Path

import pytest

from tests.contract.openai.fake_generator import byte_tokenizer
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing


def test_text_survives_a_round_trip_without_special_tokens(tmp_path: Path) -> None:
    byte_tokenizer().backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = TextTokenizer.load(tmp_path)
    ids = tokenizer.encode("a é\r\n😀")
    assert tokenizer.decode([*ids, tokenizer.vocab_size - 1]) == "a é\r\n😀"


def test_the_fingerprint_ignores_truncation_and_padding_and_nothing_else() -> None:
    plain, cut, other = (byte_tokenizer().backend for _ in range(3))
    cut.enable_truncation(5)
    cut.enable_padding(length=8)
    other.add_tokens(["more"])
    fingerprint = TextTokenizer(plain).fingerprint
    assert TextTokenizer(cut).fingerprint == fingerprint
    assert TextTokenizer(other).fingerprint != fingerprint


@pytest.mark.parametrize("content", [None, "{}", "not json"])
def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(TokenizerMissing, match=r"tokenizer\.json"):
        TextTokenizer.load(tmp_path)
