"""Masks of a grammar, beside the slow way: for every token, does the grammar take it after the path?"""

import json
from typing import Any

import numpy as np
import pytest
import torch
from llguidance import LLMatcher, LLTokenizer
from tokenizers import Tokenizer

from tests.harness.byte_tokenizers import bytes_alone, trained
from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.features.structured.grammars.grammar import Grammar, GrammarFailed
from ttmark.gen_service.features.structured.grammars.json_grammar import JsonGrammars, SchemaRefused
from ttmark.shared.tokenization import TextTokenizer

SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"enum": ["x", "yes", 12]},
        "b": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
        "c": {"type": "string", "maxLength": 4},
    },
    "required": ["a", "b", "c"],
    "additionalProperties": False,
}


def only_strings(*names: str) -> dict[str, Any]:
    strings = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": strings, "additionalProperties": False}


def plain_tokenizer() -> Tokenizer:
    """One token per byte; what a grammar forces has one spelling, so that masks are exactly what it takes."""
    backend = bytes_alone()
    backend.add_special_tokens(["</s>", "</turn>"])
    return backend


def grammars(backend: Tokenizer, ends: set[int]) -> JsonGrammars:
    return JsonGrammars(TextTokenizer(backend), ends)


def accepted(tokenizer: LLTokenizer, tokens: list[int], vocab: int, ends: set[int]) -> set[int]:
    """What may follow `tokens`, by trying every token on a matcher of its own."""
    grammar = LLMatcher.grammar_from_json_schema(
        json.dumps(SCHEMA),
        overrides={
            "whitespace_flexible": False,
            "item_separator": ", ?",
            "key_separator": ": ?",
            "json_allowed_escapes": 'nrbtf\\"',
        },
    )
    before = LLMatcher(tokenizer, grammar, log_level=0)
    assert before.consume_tokens(tokens)
    return {
        token
        for token in range(vocab)
        if (before.is_accepting() if token in ends else before.deep_copy().try_consume_tokens([token]))
    }


@pytest.mark.parametrize("whole", ['{"a":"yes","b":[1, -2],"c":"ä\\n"}', '{"a": 12, "b": [], "c": ""}'])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_branch_may_go_on_with_the_tokens_that_the_grammar_takes_after_its_path(
    whole: str, depth: int
) -> None:
    backend = plain_tokenizer()
    ends = {256, 257}
    slow = LLTokenizer(backend.to_str(), eos_token=[256])
    ids = backend.encode(whole).ids
    state = grammars(backend, ends).compile(SCHEMA).begin()
    for position in range(0, len(ids) - depth + 1, 3):
        logits = torch.zeros((2, 260))  # wider than the tokenizer, as padded models are
        path = tuple(ids[position : position + depth])
        state.mask(logits, [path, ()])
        for row, after in zip(logits, ([*ids[:position], *path], ids[:position]), strict=True):
            assert set(row.isfinite().nonzero()[:, 0].tolist()) == accepted(slow, after, 260, ends)
        state.advance(ids[position : position + 3])


def reads_back(backend: Tokenizer, tokens: list[int]) -> bool:
    """Whether the merges give the text of some tokens back as these."""
    text = "".join(backend.id_to_token(token) for token in tokens)
    return [token.id for token in backend.model.tokenize(text)] == tokens


def test_a_mask_is_what_the_grammar_takes_and_the_tokenizer_reads_back_but_for_dead_ends() -> None:
    backend = byte_tokenizer()
    slow = LLTokenizer(backend.to_str(), eos_token=[0])
    random = np.random.default_rng(1)
    sizes = set()
    for _ in range(6):
        state, tokens = grammars(backend, {0}).compile(SCHEMA).begin(), list[int]()
        while True:
            logits = torch.zeros((1, 300))
            state.mask(logits, [()])
            mask = set(logits[0].isfinite().nonzero()[:, 0].tolist())
            takes = accepted(slow, tokens, 300, {0})
            spelled = {token for token in takes if token == 0 or reads_back(backend, [*tokens[-1:], token])}
            assert mask <= spelled
            for token in spelled - mask if len(mask) > 1 else ():  # one alone is what the grammar forces
                after = accepted(slow, [*tokens, token], 300, {0})
                assert not any(reads_back(backend, [token, each]) for each in after)
            sizes.add(len(mask))
            token = int(random.choice(sorted(mask)))
            if token == 0:
                break
            state.advance([token])
            tokens.append(token)
        assert reads_back(backend, tokens)
    assert min(sizes) == 1
    assert max(sizes) > 100


def test_a_dead_end_gives_its_probability_to_what_spells_the_same_text() -> None:
    """Of `"}` forced after a text that may end, the quote alone is no token that the tokenizer reads back."""
    backend = trained(['"}'] * 9, 258)  # bytes, and a token for a quote and a brace
    quote, both, letter = (backend.token_to_id(text) for text in ('"', '"}', "x"))
    state = grammars(backend, {0}).compile(only_strings("a") | {"required": ["a"]}).begin()
    state.advance(backend.encode('{"a":"x').ids)
    model = torch.full((1, 258), -20.0)
    model[0, [quote, both, letter]] = torch.log(torch.tensor([0.5, 0.1, 0.4]))
    logits, own = model.clone(), model.clone()
    state.mask(logits, [()], own)
    for row in (logits[0], own[0]):
        assert row.softmax(0)[[quote, both, letter]].tolist() == pytest.approx([0.0, 0.6, 0.4], abs=1e-4)


def test_beside_a_branch_that_nothing_spelled_may_follow_another_one_hands_on_what_is_its_own() -> None:
    backend = trained(['"}', '",'] * 9, 259)  # bytes, and a token for a quote with either that may follow it
    quote, end, more, letter = (backend.token_to_id(text) for text in ('"', '"}', '",', "x"))
    schema = only_strings("a", "b") | {"required": ["a"]}
    state = grammars(backend, {0}).compile(schema).begin()
    state.advance(backend.encode('{"a":"x').ids)
    logits = torch.full((2, 259), -20.0)
    logits[:, [quote, end, more, letter]] = torch.log(torch.tensor([0.5, 0.1, 0.1, 0.3]))
    state.mask(logits, [(quote,), ()])
    assert logits[1].softmax(0)[[quote, end, more, letter]].tolist() == pytest.approx(
        [0.0, 0.35, 0.35, 0.3], abs=1e-4
    )


def test_only_an_end_of_text_follows_a_complete_text_and_every_one_may() -> None:
    backend = plain_tokenizer()
    letter = backend.token_to_id("y")  # an end of text that reads like text
    ends = {256, 257, letter}
    with pytest.raises(SchemaRefused, match="no token"):
        grammars(backend, ends).compile({"enum": ["xyz", "xyy"]})
    state = grammars(backend, ends).compile({"type": "boolean"}).begin()
    state.advance(backend.encode("true").ids)
    logits = torch.zeros((1, 258))
    state.mask(logits, [()])
    assert set(logits[0].isfinite().nonzero()[:, 0].tolist()) == ends


def test_completions_of_one_request_do_not_share_their_state() -> None:
    backend = plain_tokenizer()
    grammar: Grammar = grammars(backend, {256}).compile(SCHEMA)
    first, second = grammar.begin(), grammar.begin()
    first.advance(backend.encode('{"a').ids)
    logits = torch.zeros((1, 258))
    second.mask(logits, [()])
    assert logits[0].isfinite().nonzero()[:, 0].tolist() == [backend.token_to_id("{")]


def test_a_token_that_the_grammar_forbids_is_not_taken_and_what_takes_too_long_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = plain_tokenizer()
    state = grammars(backend, {256}).compile(SCHEMA).begin()
    with pytest.raises(GrammarFailed, match="does not allow"):
        state.advance(backend.encode("[").ids)
    with pytest.raises(GrammarFailed, match="too complex"):
        state.mask(torch.zeros((1, 258)), [()])
    state = grammars(backend, {256}).compile(SCHEMA).begin()
    monkeypatch.setattr("ttmark.gen_service.features.structured.grammars.grammar._SECONDS_PER_ROW", -1.0)
    with pytest.raises(GrammarFailed, match="too long"):
        state.mask(torch.zeros((1, 258)), [()])
