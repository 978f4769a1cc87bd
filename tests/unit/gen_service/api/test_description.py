"""What the schemas of requests describe and what the code takes are the same, at any depth."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from ttmark.shared.schemas.generation.chat import ChatRequest
from ttmark.shared.schemas.generation.completions import CompletionRequest
from ttmark.shared.schemas.generation.models import DetokenizeRequest, TokenizeRequest
from ttmark.shared.schemas.generation.readings import ReadingsRequest
from ttmark.shared.schemas.generation.responses_request import ResponsesRequest

Path = tuple[str | int, ...]

TURN = {"role": "user", "content": "Hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [
        TURN,
        {"role": "assistant", "content": [{"type": "text", "text": "a"}], "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "a"},
    ],
    "stream_options": {"include_usage": True},
    "watermark": {"key_id": "a"},
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "logprobs": True,
}
BODIES: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (ChatRequest, CHAT),
    (
        CompletionRequest,
        {"model": "m", "prompt": "a", "stream_options": {}, "structured_outputs": {"json": {}}},
    ),
    (
        ResponsesRequest,
        {
            "model": "m",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}],
            "text": {"format": {"type": "text"}},
            "reasoning": {},
        },
    ),
    (ReadingsRequest, {"model": "m", "texts": ["a", [1]], "messages": [TURN]}),
    (TokenizeRequest, {"model": "m", "messages": [TURN], "tools": [TOOL]}),
    (DetokenizeRequest, {"model": "m", "tokens": [1]}),
]
VALUES: list[Any] = [None, True, False, 0, 1, -1, 1.0, 1.5, 2**40]
VALUES += ["", " ", "a", "text", "none", "\x1c", "x" * 300]
VALUES += [[], [0], [1.0], ["a"], ["a"] * 65, [""], [" "], ["\x1c"], [None], [{}], [[]], [TURN], [TOOL]]
VALUES += [{}, {"a": 1}, {"1": 1}, {"a b": 1}]
VALUES += [{"type": "text"}, {"type": "regex"}, {"regex": "a"}, {"json": "a"}]
VALUES += [{"choice": []}, {"json_object": False}, {"json_object": True}, {"effort": "none"}]
VALUES += [{"include_usage": True}, {"include_usage": 1}, {"format": {"type": "text"}}, {"format": {"a": 1}}]
FORMS: list[Any] = [SCHEMA, {"type": "json_object"}, {"type": "regex", "regex": "a"}, {"type": "choice"}]
FORMS += [{"type": "choice", "choice": ["a"]}, {"type": "grammar", "grammar": "a"}, SCHEMA | {"strict": True}]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


def changed(body: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    copy = holder = deepcopy(body)
    for key in path[:-1]:
        holder = holder[key]  # type: ignore[index]
    holder[path[-1]] = value  # type: ignore[index]
    return copy


def variants(kind: type[BaseModel], body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in paths(body):
        yield changed(body, (*path, "unknown"), 1) if not path or _is_object(body, path) else body
        if path:
            yield from (changed(body, path, value) for value in VALUES)
    for name, field in kind.model_fields.items():
        yield from (body | {field.alias or name: value} for value in VALUES)


def _is_object(value: Any, path: Path) -> bool:
    for key in path:
        value = value[key]
    return isinstance(value, dict)


@pytest.mark.parametrize(("kind", "body"), BODIES, ids=[kind.__name__ for kind, _ in BODIES])
def test_a_body_is_taken_if_and_only_if_it_is_described(kind: type[BaseModel], body: dict[str, Any]) -> None:
    described, taken = Draft202012Validator(kind.model_json_schema()), 0
    forms = [body | {"response_format": form} for form in FORMS] if kind is ChatRequest else []
    for variant in [body, *variants(kind, body), *forms]:
        try:
            kind.model_validate(deepcopy(variant))
        except ValidationError:
            assert not described.is_valid(variant), variant
        else:
            taken += 1
            assert described.is_valid(variant), variant
    assert taken > 5
