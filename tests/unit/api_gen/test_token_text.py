"""What single tokens look like in log probabilities."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.unit.decoding.small_tokenizers import bytes_alone
from ttmark.gen_service.api.format import finite, token_text, utf8
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


def test_a_token_has_its_space_its_name_or_no_text_of_its_own() -> None:
    tokenizer, of_words = _byte_level(), _metaspace()
    the, end = (tokenizer.backend.token_to_id(name) for name in ("Ġthe", "<|end|>"))
    part = tokenizer.encode("é")[0]
    assert [token_text(tokenizer, token) for token in (the, end, part)] == [" the", "<|end|>", "\ufffd"]
    assert [utf8(text) for text in (" the", "\ufffd")] == [list(b" the"), None]
    assert [token_text(of_words, token) for token in (1, 99)] == [" cat", ""]


def test_numbers_are_what_json_can_say() -> None:
    assert finite(float("-inf")) == -9999.0
    assert finite(-1.5) == -1.5
