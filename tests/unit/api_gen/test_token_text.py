"""What single tokens look like in log probabilities."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.unit.decoding.small_tokenizers import bytes_alone
from ttmark.gen_service.api.control_tokens import TokenText, finite, text_offsets
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
    tokenizer = _byte_level()
    texts, of_words = TokenText(tokenizer), TokenText(_metaspace())
    the, end = (tokenizer.backend.token_to_id(name) for name in ("Ġthe", "<|end|>"))
    part = tokenizer.encode("é")[0]
    assert [texts.text(token) for token in (the, end, part)] == [" the", "<|end|>", "\ufffd"]
    assert [texts.utf8(token) for token in (the, part)] == [list(b" the"), None]
    assert [of_words.text(token) for token in (1, 99)] == [" cat", ""]


def test_numbers_are_what_json_can_say_and_offsets_count_characters() -> None:
    assert finite(float("-inf")) == -9999.0
    assert finite(-1.5) == -1.5
    assert text_offsets(["ab", "", "c"], 3) == [3, 5, 5]
