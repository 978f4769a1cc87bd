"""Tools over `/v1/responses` with the official client: an agent's loop, whole and streamed."""

import json
from typing import Any

import jsonschema
import pytest
from openai.types.responses import Response

from tests.contract.openai.tools import PARAMETERS, count, written
from tests.features.responses.openai.test_responses import TYPES

WEATHER: Any = {"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": True}
NOW: Any = {"type": "function", "name": "now", "parameters": None, "strict": None, "description": "The time."}
REQUEST: dict[str, Any] = {"model": "own-template", "input": "?", "tools": [WEATHER, NOW]}
REQUEST["extra_body"] = {"seed": 1}
CALLED = [("now", "{}"), ("weather", '{"city": "ab"}')]


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_calls_two_tools_one_after_the_other_and_then_answers(tooled: Any, stream: bool) -> None:
    client = tooled.client()
    history: list[Any] = [{"role": "user", "content": "?"}]
    for name in ("weather", "now"):
        request: Any = REQUEST | {"input": history, "tool_choice": {"type": "function", "name": name}}
        if stream:
            with client.responses.stream(**request) as events:
                response = events.get_final_response()
        else:
            response = client.responses.create(**request)
        assert response.status == "completed"
        (call,) = response.output
        schema = PARAMETERS if name == "weather" else {"type": "object", "maxProperties": 0}
        jsonschema.validate(json.loads(call.arguments), schema)
        history += [call, {"type": "function_call_output", "call_id": call.call_id, "output": "12"}]
    options: Any = {"input": history, "tool_choice": "none", "max_output_tokens": 8}
    answer = client.responses.create(**REQUEST | options)
    assert answer.output_text
    assert answer.usage.input_tokens == count(
        tooled, f"u?a{written(history[1:2])}t12a{written(history[3:4])}t12:"
    )


def test_calls_belong_to_the_words_in_front_of_them(scripted: Any) -> None:
    client = scripted.client()
    first = client.responses.create(**REQUEST)
    output = [{"type": "input_text", "text": "1"}, {"type": "input_text", "text": "2"}]
    results: Any = [
        {"type": "function_call_output", "call_id": item.call_id, "output": output}
        for item in first.output[1:]
    ]
    history = [{"role": "user", "content": "?"}, *first.output, *results]
    options: Any = {"input": history, "tool_choice": "none"}
    second = client.responses.create(**REQUEST | options)
    assert second.usage.input_tokens == count(scripted, f"u?aI < look.{written(first.output[1:])}t1\n2t1\n2:")


def test_words_and_calls_are_items_of_their_own(scripted: Any) -> None:
    body = {name: value for name, value in REQUEST.items() if name != "extra_body"}
    answer = scripted.http().post("/v1/responses", json=body).json()
    response = Response.model_validate(answer, strict=True)
    calls: Any = response.output[1:]
    assert (response.status, response.output_text) == ("completed", "I < look.")
    assert [(call.name, call.arguments) for call in calls] == CALLED
    assert len({item.id for item in response.output}) == len({call.call_id for call in calls}) + 1 == 3
    assert {item.status for item in response.output} == {"completed"}
    assert [tool.name for tool in response.tools] == ["weather", "now"]
    assert (response.tool_choice, response.parallel_tool_calls) == ("auto", True)


def test_a_stream_has_each_item_s_events_in_order(scripted: Any) -> None:
    events = list(scripted.client().responses.create(**REQUEST, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type.removeprefix("response.") for event in events]
    runs = [kind for number, kind in enumerate(kinds) if kind != kinds[number - 1]]
    words = [kind.removeprefix("response.") for kind in TYPES]
    arguments_of = ("function_call_arguments.delta", "function_call_arguments.done")
    call = ["output_item.added", *arguments_of, "output_item.done"]
    assert runs == [*words, *call, *call, "completed"]
    output = events[-1].response.output
    assert [event.item for event in events if event.type == "response.output_item.done"] == output
    for index, (name, arguments) in enumerate(CALLED, start=1):
        mine = [each for each in events if getattr(each, "output_index", 0) == index]
        assert {getattr(each, "item_id", output[index].id) for each in mine} == {output[index].id}
        assert "".join(getattr(each, "delta", "") for each in mine) == arguments
        assert (mine[0].item.name, mine[0].item.arguments, mine[-2].arguments) == (name, "", arguments)
    with scripted.client().responses.stream(**REQUEST) as stream:
        final = stream.get_final_response()
    assert [item.parsed_arguments for item in final.output[1:]] == [None, {"city": "ab"}]


def test_one_call_alone_if_it_is_asked_for(tooled: Any) -> None:
    options: Any = {"tool_choice": "required", "parallel_tool_calls": False, "tools": [WEATHER]}
    response = tooled.client().responses.create(**REQUEST | options)
    assert [item.type for item in response.output] == ["function_call"]
    assert (response.tool_choice, response.parallel_tool_calls) == ("required", False)


def test_a_call_that_the_limit_cuts_is_incomplete(tooled: Any) -> None:
    options: Any = {"tool_choice": "required", "max_output_tokens": 45}
    response = tooled.client().responses.create(**REQUEST | options)
    assert (response.status, response.output[-1].status) == ("incomplete", "incomplete")
