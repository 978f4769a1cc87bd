"""Which blocks are marked where a grammar holds an answer: those that the model has its part in."""

from typing import Any

import pytest
import torch

from tests.unit.gen_service.decoding import test_opening as opening
from tests.unit.gen_service.decoding.test_share import (
    completed,
    row_after,
    sequence,
    test_a_text_of_the_callers_choice_is_the_same_under_every_key,  # noqa: F401
    test_the_rule_is_what_keeps_the_key_out,  # noqa: F401
)
from ttmark.gen_service.features.structured.grammars.json_grammar import JsonGrammars

WORDS = {"type": "array", "items": {"enum": ["bold", "calm", "dull", "evil"]}, "minItems": 12}
SAMPLING: dict[str, dict[str, Any]] = {
    "schema": {},
    "schema, hot": {"temperature": 2.0, "top_k": 4},
    "schema and penalties": {"presence_penalty": -2.0, "frequency_penalty": -2.0},
}


@pytest.fixture(params=SAMPLING)
def restriction(request: pytest.FixtureRequest, grammars: JsonGrammars) -> dict[str, Any]:
    return {"grammar": grammars.compile(WORDS), **SAMPLING[request.param]}


def test_there_is_no_opening_where_a_grammar_is_active(grammars: JsonGrammars) -> None:
    grammar = grammars.compile({"type": "string", "minLength": 30})
    made = opening.completed(opening.request(0, 5, grammar=grammar, top_k=20))
    assert "opening" not in made.report().reasons


@pytest.mark.parametrize("schema", [WORDS, {"type": "string"}])
def test_a_marked_text_and_an_unmarked_one_are_held_to_the_same_tokens(grammars, schema: Any) -> None:
    grammar = grammars.compile(schema)
    tokens = completed(sequence(None, 3, grammar=grammar))
    marked, plain = sequence(1, 3, grammar=grammar), sequence(None, 3, grammar=grammar)
    for place in range(0, len(tokens) - 1, 2):
        rows = []
        for each in (marked, plain):
            logits = row_after(each.tokens, 8.0)[None]
            each.block = None
            each.adjust(each.open_block(8), logits)
            rows.append(logits)
            each._grammar.advance(tokens[place : place + 2])  # type: ignore[union-attr]
            each.tokens += tokens[place : place + 2]
        assert torch.equal(*rows)
