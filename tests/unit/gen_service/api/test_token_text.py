"""What single tokens look like in log probabilities."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.harness.byte_tokenizers import bytes_alone
from tests.harness.trained_tokenizers import bpe_with_byte_fallback
from ttmark.gen_service.api.format import finite, token_text
from ttmark.shared.tokenization import TextTokenizer


def _byte_level() -> TextTokenizer:
    backend = bytes_alone(use_regex=True, more=["Ġthe"])
    backend.add_special_tokens(["<|end|>"])
    return TextTokenizer(backend)


def _metaspace() -> TextTokenizer:
    backend = Tokenizer(models.WordLevel({"▁the": 0, "▁cat": 1, "s": 2}, unk_token="s"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    return TextTokenizer(backend)


def test_a_token_has_its_space_its_name_or_the_bytes_of_its_character() -> None:
    tokenizer, of_words = _byte_level(), _metaspace()
    the, end = (tokenizer.backend.token_to_id(name) for name in ("Ġthe", "<|end|>"))
    parts = tokenizer.encode("é")
    shown = [token_text(tokenizer, token) for token in (the, end, *parts)]
    assert [each.text for each in shown] == [" the", "<|end|>", r"bytes:\xc3", r"bytes:\xa9"]
    assert [each.raw for each in shown] == [b" the", b"<|end|>", b"\xc3", b"\xa9"]
    assert [token_text(of_words, token).text for token in (1, 99)] == [" cat", ""]
    fallback = bpe_with_byte_fallback(["one two"] * 5, 400)
    (_, *bytes_of_it) = fallback.encode("é")
    assert [token_text(fallback, token).raw for token in bytes_of_it] == [b"\xc3", b"\xa9"]


def test_numbers_are_what_json_can_say() -> None:
    assert finite(float("-inf")) == -9999.0
    assert finite(-1.5) == -1.5
