"""Completions under a grammar: always valid, still watermarked."""

import asyncio
import json
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.unit.gen_service.engine.asking import KEY, StartEngine, collect, marking, text, together, tokens
from ttmark.gen_service.decoding import tandem_block
from ttmark.gen_service.decoding.request import GenerationRequest, SamplingParams, SequenceFailed
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.features.structured.grammars.json_grammar import JsonGrammars
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.schemes.watermark import Watermark

SIZES = [1, 2, pytest.param(3, marks=pytest.mark.slow)]
SCHEMAS: list[dict[str, Any]] = [
    {"enum": ["red", "green", {"a": None}, [1, 2]]},
    {"type": "array", "items": {"type": "integer", "minimum": -20, "maximum": 300}, "maxItems": 6},
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 12},
            "kind": {"anyOf": [{"const": "dog"}, {"type": "null"}]},
            "at": {"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"},
        },
        "required": ["name", "at"],
        "additionalProperties": False,
    },
]


@pytest.fixture(scope="module")
def grammars(engine: Engine) -> JsonGrammars:
    return JsonGrammars(engine.tokenizer, engine.eos_token_ids)


def ask(
    engine: Engine, grammars: JsonGrammars, schema: dict[str, Any], block_size: int | None, **params: Any
) -> GenerationRequest:
    values = {"max_tokens": 200, "top_k": 30, "seed": 1, **params}
    mark = marking(block_size) if block_size else None
    prompt = tuple(engine.tokenizer.encode("The quick brown fox"))
    return GenerationRequest("id", prompt, SamplingParams(**values), mark, grammar=grammars.compile(schema))


@pytest.mark.parametrize("schema", SCHEMAS, ids=["values", "list", "object"])
@pytest.mark.parametrize("block_size", [None, *SIZES])
async def test_every_completion_is_valid_and_ends_by_itself(
    engine: Engine, grammars: JsonGrammars, schema: dict[str, Any], block_size: int | None
) -> None:
    asked = [
        ask(engine, grammars, schema, block_size, seed=seed, **options)
        for options in ({}, {"temperature": 2.0, "top_k": 0}, {"temperature": 0.0}, {"presence_penalty": 2.0})
        for seed in range(2)
    ]
    for deltas in await together(engine, asked):
        assert deltas[-1].finish_reason == "stop"
        assert tokens(deltas)[-1] == 0
        jsonschema.validate(json.loads(text(deltas)), schema)


@pytest.mark.parametrize("block_size", [2, 3])
async def test_preemption_changes_nothing(
    engine: Engine, start_engine: StartEngine, grammars: JsonGrammars, block_size: int
) -> None:
    cramped = start_engine(kv_tokens=128)
    cramped._stepper._scheduler._growth_tokens = 8
    integer = {"type": "integer", "minimum": 0, "maximum": 999}
    schema = {"type": "array", "items": integer, "minItems": 10, "maxItems": 12}
    requests = [ask(engine, grammars, schema, block_size, seed=seed, max_tokens=80) for seed in range(6)]
    roomy, tight = [await together(each, requests) for each in (engine, cramped)]
    assert engine.stats.preemptions == 0 < cramped.stats.preemptions
    assert list(map(tokens, tight)) == list(map(tokens, roomy))


@pytest.mark.parametrize("block_size", SIZES)
async def test_the_watermark_of_a_long_constrained_text_is_found(
    engine: Engine, grammars: JsonGrammars, block_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tandem_block, "LEAST_SHARE", 0.0)  # a random model wants no JSON
    schema = {"type": "array", "items": {"type": "string", "minLength": 150}, "minItems": 1}
    deltas = await collect(engine, ask(engine, grammars, schema, block_size))
    watermark = Watermark("synthid", block_size)
    assert detect_direct(watermark, KEY, tokens(deltas)).log10_p < -8
    assert detect_direct(watermark, KEY[::-1], tokens(deltas)).log10_p > -3


async def test_logit_bias_chooses_among_what_is_allowed_and_allows_nothing_else(
    engine: Engine, grammars: JsonGrammars
) -> None:
    quote = engine.tokenizer.encode("g")[0]
    bias = dict.fromkeys(range(engine.vocab_size), -100.0) | {quote: 100.0}
    deltas = await collect(engine, ask(engine, grammars, {"enum": ["red", "green"]}, 2, logit_bias=bias))
    assert text(deltas) == '"green"'


async def test_a_text_that_cannot_go_on_fails_alone(
    engine: Engine, grammars: JsonGrammars, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = ask(engine, grammars, SCHEMAS[2], 2), ask(engine, grammars, SCHEMAS[0], 2, seed=2)
    expected = tokens(await collect(engine, good))
    assert bad.grammar is not None
    begin = bad.grammar.begin

    def begin_spoilt() -> Any:
        state = begin()
        state._ends = np.arange(engine.vocab_size)  # so that nothing may come before the text is complete
        return state

    monkeypatch.setattr(bad.grammar, "begin", begin_spoilt)
    results = await asyncio.gather(collect(engine, good), collect(engine, bad), return_exceptions=True)
    assert isinstance(results[0], list)
    assert tokens(results[0]) == expected
    assert isinstance(results[1], SequenceFailed)
    assert "grammar" in str(results[1])
