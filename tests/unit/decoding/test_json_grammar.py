"""Schemas of strangers: what cannot be kept to, or would take too long, is refused in time."""

import ctypes
import json
import threading
import time
from typing import Any

import pytest
from tokenizers import Tokenizer, models

from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.api import structured_outputs
from ttmark.gen_service.api.tools import answer_source
from ttmark.gen_service.decoding.grammar import GrammarSource
from ttmark.gen_service.decoding.json_grammar import (
    MAX_GRAMMAR_BYTES,
    MAX_MULTIPLES,
    MAX_NUMBER,
    JsonGrammars,
    SchemaRefused,
    TokenizerUnsuitable,
)
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.chat import ChatRequest
from ttmark.shared.tokenization import TextTokenizer


def text(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


def only(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}


def multiple(*values: float) -> dict[str, Any]:
    return only({"allOf": [{"type": "number", "multipleOf": value} for value in values]})


NODE = {"$ref": "#/$defs/n"}
REFUSED: dict[str, tuple[Any, str]] = {
    "an unknown keyword": ({"type": "array", "uniqueItems": True}, "uniqueItems"),
    "a negation": ({"not": text()}, "not"),
    "options of the library": ({"x-guidance": {"lenient": True}, "type": "object"}, "x-guidance"),
    "an unknown format": (only(text(format="idn-email")), "idn-email"),
    "a look-around": (only(text(pattern="(?=a)b")), "look-around"),
    "a remote reference": ({"$ref": "http://example.com/schema"}, "example.com"),
    "nothing": (only(False), "[Uu]nsatisfiable"),
    "a reference to itself": ({**NODE, "$defs": {"n": NODE}}, "NoExtension"),
    "a large enum": (only({"enum": [f"value {i}" for i in range(20_000)]}), "65536 bytes"),
    "a long constant": (only({"const": "x" * 60_000}), "too many expressions"),
    "many properties": ({"type": "object", "properties": {str(i): {} for i in range(3000)}}, "1000"),
    "many optional properties": ({"type": "object", "properties": {str(i): {} for i in range(900)}}, "items"),
    "many patterns of names": (
        {"type": "object", "patternProperties": {f"^a{i}x.*$": text() for i in range(900)}},
        "patternProperties",
    ),
    "a large multiple": (multiple(999_983), "multipleOf"),
    "a huge multiple": (multiple(1e300), "multipleOf"),
    "a fine multiple": (multiple(1.23456789), "multipleOf"),
    "multiples of each other": (multiple(97, 89, 83, 79), "multipleOf"),
    "a constant that is not exact": (only({"const": -MAX_NUMBER - 1}), "number in const"),
    "one that is deep in an enum": (only({"enum": ["a", {"b": [MAX_NUMBER + 1]}]}), "number in const"),
    "ambiguous recursion": (
        {**NODE, "$defs": {"n": {"anyOf": [{"type": "array", "items": NODE} for _ in range(290)]}}},
        "items",
    ),
    "many alternatives": ({"anyOf": [text(maxLength=i) for i in range(500)]}, "300"),
    "exponential alternatives": (
        {"allOf": [{"anyOf": [only(text(const=f"{i}{j}")) for j in range(4)]} for i in range(12)]},
        "too large|nsatisfiable",
    ),
    "many optional parts": (only(text(pattern=f"^{'a?' * 301}$")), "optional parts than the limit of 300"),
    "a name of many": ({"type": "object", "patternProperties": {"(b|)" * 301: {}}}, "optional parts"),
    "many of a regex": (GrammarSource("regex", "[a-z]{0,2}x*" * 151), "optional parts"),
    "many of a terminal's terminals": (
        GrammarSource("grammar", 'start: B\nB: A A A "x"\nA: /' + "a?" * 101 + "/\n"),
        "optional parts",
    ),
    "nested repetitions": (only(text(pattern="(((.{0,1000}){0,1000}){0,1000}c){0,1000}")), "lexer|nsatisf"),
}
TAKEN: dict[str, Any] = {
    "any value": {},
    "nested objects": only(only(only({"type": ["integer", "null"]}))),
    "recursion": {**NODE, "$defs": {"n": only({"type": "array", "items": NODE})}},
    "a long string": only(text(maxLength=100_000)),
    "a long list": {"type": "array", "items": text(), "minItems": 10**6},
    "a backtracking pattern": only(text(pattern="^(a+)+$")),
    "a thousand values": only({"enum": [f"value {i}" for i in range(1000)]}),
    "a price": multiple(0.01),
    "the largest multiple": multiple(MAX_MULTIPLES),
    "the furthest constants": only({"enum": [MAX_NUMBER, -MAX_NUMBER, True, 1e-300]}),
    "pydantic's optional": only({"anyOf": [text(), {"type": "null"}], "default": None, "title": "A"}),
    **{
        pattern: only(text(pattern=pattern))
        for pattern in (
            r"^[\w.%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}$",
            r"^https?://(www\.)?[-\w@:%.+~#=]{1,256}\.[a-z]{1,6}(:\d+)?(/[-\w()@:%+.~#?&/=]*)?$",
            r"^\d{4}-(0[1-9]|1[0-2])-([0-2]\d|3[01])(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$",
            r"^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$",
            r"^[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?$",
            r"^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$",
            r"^(\+\d{1,3}[ -]?)?\(?\d{2,4}\)?[ -]?\d{3,4}[ -]?\d{3,4}$",
            "^(" + "|".join(f"(?:item{i})" for i in range(400)) + ")$",
        )
    },
    "a regex of choices": GrammarSource("regex", "|".join(f"word{i}" for i in range(1000))),
    "a hundred optional properties": {"type": "object", "properties": {f"p{i}": text() for i in range(100)}},
}


@pytest.fixture(scope="module")
def grammars() -> JsonGrammars:
    return JsonGrammars(TextTokenizer(byte_tokenizer()), {0})


@pytest.mark.parametrize(("schema", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_kept_to_is_refused_by_name_and_in_time(
    grammars: JsonGrammars, schema: dict[str, Any] | GrammarSource, reason: str
) -> None:
    started = time.thread_time()
    with pytest.raises(SchemaRefused, match=reason) as refusal:
        grammars.compile(schema)
    assert time.thread_time() - started < 3.0
    assert "\n" not in str(refusal.value)


def test_what_is_far_too_long_is_neither_written_nor_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError

    for module, name in ((json, "dumps"), (structured_outputs, "parse_json")):
        monkeypatch.setattr(module, name, never)
    for schema in ({"enum": ["a" * 50] * 2_000}, {"const": "a" * 70_000}, {"enum": [1] * 70_000}):
        with pytest.raises(SchemaRefused, match="65536 bytes"):
            answer_source(schema, None)
    asked = {"model": "m", "messages": [{"role": "user", "content": "a"}], "guided_json": " " * 300_000}
    with pytest.raises(BadRequest, match="65536 bytes"):
        structured_outputs.asked_form(ChatRequest.model_validate(asked))


def test_the_library_has_a_stack_that_the_longest_grammar_does_not_fill(grammars: JsonGrammars) -> None:
    c, size = ctypes.CDLL(None), ctypes.c_size_t()

    def measure() -> None:
        attributes = ctypes.create_string_buffer(64)
        assert c.pthread_getattr_np(ctypes.c_void_p(threading.get_ident()), attributes) == 0
        c.pthread_attr_getstacksize(attributes, ctypes.byref(size))

    grammars._thread.submit(measure).result()
    assert size.value >= 4096 * MAX_GRAMMAR_BYTES


@pytest.mark.parametrize("schema", TAKEN.values(), ids=TAKEN.keys())
def test_ordinary_schemas_are_taken(grammars: JsonGrammars, schema: dict[str, Any] | GrammarSource) -> None:
    grammars.compile(schema)


def test_a_strangers_grammar_is_taken_up_to_its_limit_and_refused_where_it_cannot_be_read(
    grammars: JsonGrammars,
) -> None:
    comment = 'start: "a"\n// '
    longest = comment + "x" * (MAX_GRAMMAR_BYTES - len(comment))
    grammars.compile(GrammarSource("grammar", longest))
    for text_of_it, reason in (
        (longest + "x", f"larger than the limit of {MAX_GRAMMAR_BYTES} bytes"),
        ("start: (", "."),
        ('root ::= ("a"', "."),
    ):
        with pytest.raises(SchemaRefused, match=reason) as refusal:
            grammars.compile(GrammarSource("grammar", text_of_it))
        assert "\n" not in str(refusal.value)


def test_a_model_without_an_end_of_text_and_a_tokenizer_of_words_have_no_grammars() -> None:
    with pytest.raises(TokenizerUnsuitable, match="ends a text"):
        JsonGrammars(TextTokenizer(byte_tokenizer()), ()).compile({})
    words = Tokenizer(models.WordLevel({"<unk>": 0, "a": 1}, unk_token="<unk>"))
    with pytest.raises(TokenizerUnsuitable, match="bytes"):
        JsonGrammars(TextTokenizer(words), {0}).compile({})
