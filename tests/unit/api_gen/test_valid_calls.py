"""Calls under 25 schemas, written from random logits: valid to an independent validator, however streamed."""

import json
from typing import Any

import jsonschema
import pytest
import torch

from tests.unit.api_gen.small_schemas import SMALL_SCHEMAS
from tests.unit.api_gen.test_tool_formats import FORMATS, TOKENIZER, read
from ttmark.gen_service.api.tools import ToolUse
from ttmark.gen_service.decoding.json_grammar import JsonGrammars
from ttmark.shared.schemas.tools import Function

LONGEST = 600
ENDS_STRINGS = 3.0
"""Added to the logit of a quotation mark, so that free strings come to an end."""


@pytest.fixture(scope="module")
def grammars() -> JsonGrammars:
    return JsonGrammars(TOKENIZER, {0})


def as_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself where it is one of an object, else that of an object that holds the value."""
    if schema.get("type") == "object":
        return schema
    held = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    return held | {"additionalProperties": False}


def written(grammars: JsonGrammars, form: Any, function: Function, seed: int) -> list[str]:
    """The pieces of a text that is one call."""
    state = grammars.compile(
        ToolUse(form, (), [function], must=True, several=False).source(None, None)
    ).begin()
    random, tokens = torch.Generator().manual_seed(seed), list[int]()
    (quote,) = TOKENIZER.encode('"')
    for _ in range(LONGEST):
        logits = torch.randn((1, TOKENIZER.vocab_size), generator=random)
        logits[0, quote] += ENDS_STRINGS
        state.mask(logits, [()])
        token = int(logits.argmax())
        if token == 0:
            text = TOKENIZER.decode(tokens)
            return [text[at : at + 3] for at in range(0, len(text), 3)]
        state.advance([token])
        tokens.append(token)
    raise AssertionError(f"no end after {LONGEST} tokens: {TOKENIZER.decode(tokens)[:200]}")


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_every_call_is_valid_and_its_stream_adds_up_to_it(grammars: JsonGrammars, rounds: int) -> None:
    assert len(SMALL_SCHEMAS) == 25
    for number, small in enumerate(SMALL_SCHEMAS):
        schema = as_arguments(small)
        function = Function(name=f"tool_{number}", parameters=schema, strict=True)
        for seed in range(rounds):
            form = FORMATS[(seed + number) % len(FORMATS)]
            pieces = written(grammars, form, function, seed * 100 + number)
            said = words, calls, whole = read(form, pieces)
            assert said == read(form, ["".join(pieces)])
            assert (words, whole, len(calls)) == ("", True, 1)
            ((name, arguments),) = calls
            assert name == function.name
            jsonschema.validate(json.loads(arguments), schema)
