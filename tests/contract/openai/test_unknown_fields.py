"""A field that nobody knows is refused by name, or ignored and named where the service is told to."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.openai.composed import BODIES, build_service
from tests.contract.openai.fake_generator import FakeGenerator
from tests.harness.imports import ROOT
from ttmark.gen_service.api.plan.watermark_report import described_headers

COMPLETIONS, CHATS, RESPONSES = BODIES
MESSAGES = [{"role": "user", "content": "Hi"}]
CHAT: dict[str, Any] = {"model": "tiny", "messages": MESSAGES, "max_tokens": 4, "seed": 1}
FUNCTION = {"name": "weather", "parameters": {"type": "object", "properties": {"anything": {}}}}
SCHEMA = {"name": "a", "schema": {"type": "object", "whatever": 1}}


def _turn(**more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Hi"} | more]}


# route, what is wrong with the body, the field that the answer names, and the one that it takes it for
UNKNOWN: list[tuple[str, dict[str, Any], str, str | None]] = [
    (COMPLETIONS, {"temprature": 0.5}, "temprature", "temperature"),
    (COMPLETIONS, {"maxTokens": 5}, "maxTokens", "max_tokens"),
    (COMPLETIONS, {"messages": []}, "messages", None),
    (COMPLETIONS, {"frobnicate": None}, "frobnicate", None),
    (COMPLETIONS, {"ignore_eos ": True}, "ignore_eos ", "ignore_eos"),
    (COMPLETIONS, {"stream_options": {"include_usge": True}}, "stream_options.include_usge", "usage"),
    (COMPLETIONS, {"watermark": {"enable": False}}, "watermark.enable", "watermark.enabled"),
    (CHATS, {"watermarks": {"enabled": False}}, "watermarks", "watermark"),
    (CHATS, {"max_output_tokens": 5}, "max_output_tokens", "max_tokens"),
    (CHATS, {"input": "a"}, "input", "messages"),
    (CHATS, {"tools": [{"type": "function", "name": "a"}]}, "tools[0].name", "function.name"),
    (RESPONSES, {"tools": [{"type": "function", "function": FUNCTION}]}, "tools[0].function", "name"),
    (RESPONSES, {"messages": []}, "messages", "input"),
    (RESPONSES, {"response_format": {"type": "text"}}, "response_format", "text.format"),
    (RESPONSES, {"structured_outputs": {}}, "structured_outputs", "text.format"),
    (CHATS, {"response_format": {"type": "text", "strict": True}}, "strict", None),
    (
        CHATS,
        {"response_format": {"type": "json_schema", "json_schema": SCHEMA | {"strct": True}}},
        "response_format.json_schema.strct",
        "response_format.json_schema.strict",
    ),
    (
        CHATS,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "json_schema": {}}}},
        "response_format.json_schema.json_schema",
        "response_format.json_schema.schema",
    ),
    (
        CHATS,
        {"tools": [{"type": "function", "function": FUNCTION | {"paramters": {}}}]},
        "tools[0].function.paramters",
        "tools[0].function.parameters",
    ),
    (
        CHATS,
        {"tool_choice": {"type": "function", "name": "f"}},
        "tool_choice.name",
        "tool_choice.function.name",
    ),
    (CHATS, _turn(contents="Hi"), "messages[0].contents", "messages[0].content"),
    (
        CHATS,
        _turn(content=[{"type": "text", "text": "a", "txt": "b"}]),
        "messages[0].content[0].txt",
        "messages[0].content[0].text",
    ),
    (RESPONSES, {"max_tokens": 5}, "max_tokens", "max_output_tokens"),
    (RESPONSES, {"reasoning": {"efort": "none"}}, "reasoning.efort", "reasoning.effort"),
    (RESPONSES, {"input": [{"role": "user", "content": "a", "nickname": "b"}]}, "input[0].nickname", None),
    (RESPONSES, {"watermark": {"show_block": True}}, "watermark.show_block", "watermark.show_blocks"),
    ("readings", {"texts": ["a"], "text": ["b"]}, "text", "texts"),
]


def test_unknown_fields_are_refused_by_name_with_the_nearest_that_there_is(fake: Any) -> None:
    for route, change, name, nearest in UNKNOWN:
        answer = fake.post(route, "reader" if route == "readings" else "author", **change)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "invalid_request"), (change, error)
        assert error["param"].endswith(name)
        path, _, meant = error["message"].removeprefix("Unknown field '").partition("'")
        assert path == error["param"]
        assert meant.endswith(f"{nearest}'?" if nearest else "."), error["message"]
        assert "\n" not in error["message"]


@pytest.fixture(scope="module")
def ignoring(serve: Callable[..., Any]) -> Any:
    """A service that is told to ignore what it does not know."""
    return serve(build_service(FakeGenerator(), ignore_unknown_fields=True))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", BODIES)
def test_where_they_are_ignored_a_header_lists_them(ignoring: Any, route: str, stream: bool) -> None:
    plain = ignoring.post(route, stream=stream, stream_options={})
    more = {"stream_options": {"include_usge": True}, "guessed": 1, "tempratur\n\u00e9": [1]}
    answer = ignoring.post(route, stream=stream, **more)
    assert answer.status_code == plain.status_code == 200
    assert "Warning" not in plain.headers
    assert answer.headers["Warning"] == '299 - "Ignored: stream_options.include_usge, guessed, tempratur??"'


def test_a_header_does_not_grow_with_what_is_ignored(ignoring: Any) -> None:
    more = {f"{number:03d}" + "x" * 500: 1 for number in range(100)}
    answer = ignoring.post(COMPLETIONS, **more)
    assert answer.headers["Warning"].endswith(' and 80 more"')
    assert len(answer.headers["Warning"]) < 1_500


def test_in_the_watermark_nothing_is_ignored(ignoring: Any) -> None:
    answer = ignoring.post(COMPLETIONS, watermark={"enable": False})
    error = answer.json()["error"]
    assert error["message"] == "Unknown field 'watermark.enable'; did you mean 'watermark.enabled'?"
    assert (answer.status_code, error["param"]) == (400, "watermark.enable")


def test_pages_of_other_origins_may_read_what_was_ignored() -> None:
    assert "Warning" in described_headers()


PAGE = (ROOT / "docs" / "frameworks.md").read_text()


def test_what_the_page_of_frameworks_records_is_taken(fake: Any) -> None:
    bodies = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.S)]
    assert len(bodies) >= 3
    for body in bodies:
        limits = {name: 4 for name in body if name.endswith("_tokens")}
        answer = fake.http().post("/v1/chat/completions", json=body | {"model": "tiny"} | limits)
        assert answer.status_code == 200, answer.text


def test_messages_of_answers_can_be_sent_again_as_clients_keep_them(fake: Any) -> None:
    client = fake.client()
    made = client.chat.completions.create(**CHAT).choices[0].message
    call = {"id": "c", "type": "function", "index": 0, "function": {"name": "f", "arguments": "{}"}}
    kept = [made.model_dump(), made, {"role": "assistant", "content": None, "tool_calls": [call]}]
    result = {"role": "tool", "tool_call_id": "c", "content": "1", "name": "f"}
    thought = {"role": "assistant", "content": "a", "reasoning_content": "b"}
    asked: Any = [{"role": "user", "content": "Hi", "name": "me"}, *kept, result, thought]
    assert client.chat.completions.create(**CHAT | {"messages": asked}).choices
    response: Any = {"model": "tiny", "input": "Hi", "max_output_tokens": 4}
    item = client.responses.create(**response, extra_body={"return_token_ids": True}).output[0]
    conversation: Any = [{"role": "user", "content": "Hi"}, item.model_dump(), item]
    assert client.responses.create(**response | {"input": conversation}).output
