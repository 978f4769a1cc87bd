"""What single tokens look like in log probabilities."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from ttmark.gen_service.api.format import finite, token_text, utf8
from ttmark.shared.tokenization import TextTokenizer


def _byte_level() -> TextTokenizer:
    vocab = {symbol: index for index, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocab["Ġthe"] = len(vocab)
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<|end|>"])
    return TextTokenizer(backend)


def _metaspace() -> TextTokenizer:
    backend = Tokenizer(models.WordLevel({"▁the": 0, "▁cat": 1, "s": 2}, unk_token="s"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    return TextTokenizer(backend)


def test_a_token_has_its_space_its_name_or_no_text_of_its_own() -> None:
    assert token_text(_metaspace(), 1) == " cat"
    byte_level = _byte_level()
    the = byte_level.backend.token_to_id("Ġthe")
    assert token_text(byte_level, the) == " the"
    assert utf8(" the") == list(b" the")
    tokenizer = _byte_level()
    end = tokenizer.backend.token_to_id("<|end|>")
    assert token_text(tokenizer, end) == "<|end|>"
    tokenizer = _byte_level()
    part = tokenizer.encode("é")[0]
    assert token_text(tokenizer, part) == "\ufffd"
    assert utf8("\ufffd") is None
    assert token_text(_metaspace(), 99) == ""


def test_numbers_are_what_json_can_say() -> None:
    assert finite(float("-inf")) == -9999.0
    assert finite(-1.5) == -1.5
