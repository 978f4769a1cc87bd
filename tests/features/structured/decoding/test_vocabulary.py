"""What the library is told of a tokenizer, beside what it reads in the tokenizer's own file."""

import numpy as np
import pytest
from llguidance import LLMatcher, LLTokenizer
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

from tests.harness.byte_tokenizers import bytes_alone, trained
from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.features.structured.grammars.json_grammar import guided
from ttmark.gen_service.features.structured.grammars.vocabulary import Vocabulary
from ttmark.shared.tokenization import TextTokenizer

_SCHEMA = {
    "type": "object",
    "properties": {"first name": {"type": "string"}, "kind": {"enum": ["apple pie", "Übel", 12]}},
    "required": ["first name", "kind"],
    "additionalProperties": False,
}


def byte_fallback() -> Tokenizer:
    """As Llama 2's: a blank is a letter of its own, and one is put before a text."""
    texts = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *'abcdefilmnprsty{}":, 12']
    more = ["ap", "▁ap", "na", "▁▁"]
    vocabulary = {text: number for number, text in enumerate(dict.fromkeys([*texts, *more]))}
    merges = [("a", "p"), ("▁", "ap"), ("n", "a"), ("▁", "▁")]
    backend = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return backend


@pytest.mark.parametrize(
    "make", [byte_tokenizer, bytes_alone, byte_fallback, lambda: trained(["first name kind"], 290)]
)
def test_tokens_and_masks_are_those_of_the_tokenizer_s_own_file(make) -> None:  # type: ignore[no-untyped-def]
    backend = make()
    backend.add_tokens(["<mark>", AddedToken("é ö", normalized=False), "  "])
    backend.add_special_tokens(["[end]"])
    end = backend.token_to_id("[end]")
    ours = Vocabulary.of(TextTokenizer(backend), [end]).library
    theirs = LLTokenizer(backend.to_str(), eos_token=[end])
    assert [ours.decode_bytes([token]) for token in range(end + 1)] == [
        theirs.decode_bytes([token]) for token in range(end + 1)
    ]
    grammar = LLMatcher.grammar_from_json_schema(guided(_SCHEMA))
    random = np.random.default_rng(0)
    for _ in range(5):
        both = [LLMatcher(each, grammar, log_level=0) for each in (ours, theirs)]
        for _ in range(40):
            mask, same = (np.frombuffer(each.compute_bitmask(), np.uint8) for each in both)
            np.testing.assert_array_equal(mask, same)
            allowed = np.flatnonzero(np.unpackbits(mask, bitorder="little"))
            token = int(random.choice(allowed))
            if token == end:
                break
            assert all(each.consume_tokens([token]) for each in both)


def test_models_with_one_tokenizer_share_its_vocabulary() -> None:
    one, same = (Vocabulary.of(TextTokenizer(byte_tokenizer()), [0]) for _ in range(2))
    other = Vocabulary.of(TextTokenizer(byte_tokenizer()), [0, 1])
    assert one is same
    assert other is not one
