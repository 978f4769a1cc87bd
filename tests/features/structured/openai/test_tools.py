"""Tools with the official client and with LangChain: the documented examples of calls, whole and streamed."""

import json
from typing import Any

import jsonschema
import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

from tests.contract.openai.composed import build_service
from tests.contract.openai.fake_generator import CONTEXT_LENGTH
from tests.contract.openai.tools import KNOWS_TOOLS, NOW, PARAMETERS, WEATHER, count, written
from tests.harness.likelihood import detect_likelihood
from ttmark.gen_service.api.conversation.chat_template import ChatTemplate

ASKED: Any = [{"role": "user", "content": "?"}]


MARKED = ("watermarked", "partial", "unwatermarked")


def call(service: Any, **more: Any) -> Any:
    options = {"model": "own-template", "messages": ASKED, "tools": [WEATHER, NOW], "seed": 1, **more}
    return service.client().chat.completions.create(**options)


def checked(calls: Any) -> list[tuple[str, str]]:
    """Names and arguments of calls, which are valid."""
    for each in calls:
        assert (each.type, each.id[:5]) == ("function", "call_")
        schema = PARAMETERS if each.function.name == "weather" else {"type": "object", "maxProperties": 0}
        jsonschema.validate(json.loads(each.function.arguments), schema)
    return [(each.function.name, each.function.arguments) for each in calls]


@pytest.mark.parametrize("seed", range(3))
def test_a_required_call_is_valid_and_alone(tooled: Any, seed: int) -> None:
    answer = call(tooled, tool_choice="required", parallel_tool_calls=False, seed=seed)
    (choice,) = answer.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    assert len(checked(choice.message.tool_calls)) == 1
    assert answer.model_extra["watermark"]["status"] in MARKED


@pytest.mark.parametrize("odd", ["[" * 90, '"\\ud800"', '{"\\udfff": 1}', '{"a": 1e999}', "NaN", ""])
def test_earlier_arguments_that_are_no_json_are_a_text(tooled: Any, odd: str) -> None:
    made = {"id": "a", "type": "function", "function": {"name": "now", "arguments": odd}}
    chat = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "a", "content": "y"},
    ]
    items = [
        {"role": "user", "content": "x"},
        {"type": "function_call", "call_id": "a", "name": "now", "arguments": odd},
        {"type": "function_call_output", "call_id": "a", "output": "y"},
    ]
    for path, body in (
        ("/v1/chat/completions", {"messages": chat, "max_tokens": 2}),
        ("/v1/responses", {"input": items, "max_output_tokens": 16}),
        ("/tokenize", {"messages": chat}),
    ):
        answer = tooled.http().post(path, json={"model": "own-template", **body})
        assert answer.status_code == 200, answer.text


def test_a_named_function_is_called(tooled: Any) -> None:
    for name in ("weather", "now"):
        choice = {"type": "function", "function": {"name": name}}
        message = call(tooled, tool_choice=choice).choices[0].message
        assert [made for made, _ in checked(message.tool_calls)] == [name]


@pytest.mark.parametrize("seed", range(3))
def test_a_streamed_call_adds_up_to_the_whole_one(tooled: Any, seed: int) -> None:
    options: Any = {"tool_choice": "required", "seed": seed, "temperature": 0.7}
    whole = call(tooled, **options).choices[0]
    calls: list[Any] = []
    reasons, chunks = [], 0
    for chunk in call(tooled, **options, stream=True):
        reasons += [each.finish_reason for each in chunk.choices if each.finish_reason]
        for piece in chunk.choices[0].delta.tool_calls or ():
            chunks += 1
            if piece.id is not None:
                assert piece.index == len(calls)
                calls.append([piece.function.name, ""])
            calls[piece.index][1] += piece.function.arguments
    assert reasons == [whole.finish_reason]
    assert [tuple(each) for each in calls] == [
        (each.function.name, each.function.arguments) for each in whole.message.tool_calls
    ]
    assert chunks >= len(calls)


def test_words_are_words_where_the_model_calls_nothing(tooled: Any) -> None:
    message = call(tooled, max_tokens=20).choices[0]
    assert (message.finish_reason, message.message.tool_calls) == ("length", None)
    assert message.message.content
    text = "".join(chunk.choices[0].delta.content or "" for chunk in call(tooled, max_tokens=20, stream=True))
    assert text == message.message.content


def test_words_and_the_calls_after_them_are_told_apart(scripted: Any) -> None:
    choice = call(scripted).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I < look.")
    calls = [("now", "{}"), ("weather", '{"city": "ab"}')]
    assert checked(choice.message.tool_calls) == calls
    with scripted.client().chat.completions.stream(
        model="own-template", messages=ASKED, tools=[WEATHER, NOW]
    ) as stream:
        streamed = stream.get_final_completion().choices[0]
    assert (streamed.finish_reason, streamed.message.content) == ("tool_calls", "I < look.")
    assert checked(streamed.message.tool_calls) == calls
    *_, last = call(scripted, stream=True)
    assert last.model_extra["watermark"]["blocks"] > 0


def test_no_tool_is_shown_or_called_with_the_choice_none(tooled: Any) -> None:
    none, plain = call(tooled, tool_choice="none", max_tokens=8), call(tooled, tools=[], max_tokens=8)
    assert none.choices[0].message == plain.choices[0].message
    assert none.usage == plain.usage
    assert call(tooled, max_tokens=8).usage.prompt_tokens > plain.usage.prompt_tokens


def test_a_history_with_calls_and_results_is_continued(tooled: Any) -> None:
    (made,) = call(tooled, tool_choice="required", parallel_tool_calls=False).choices[0].message.tool_calls
    history = [
        *ASKED,
        {"role": "assistant", "content": None, "tool_calls": [made.model_dump()]},
        {"role": "tool", "tool_call_id": made.id, "content": "12"},
    ]
    answer = call(tooled, messages=history, max_tokens=8)
    assert answer.choices[0].message.content
    assert answer.usage.prompt_tokens == count(tooled, f"weathernowu?a{written([made.function])}t12:")


def test_a_model_whose_template_knows_no_tools_is_told_of_them(real: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="context") as refusal:  # ours is longer than the context
        call(real, model="tiny", tool_choice="required")
    assert refusal.value.code == "context_length_exceeded"


def test_several_choices_call_each_for_itself(tooled: Any) -> None:
    answer = call(tooled, tool_choice="required", n=3, parallel_tool_calls=False, tools=[WEATHER])
    said = [checked(choice.message.tool_calls)[0] for choice in answer.choices]
    assert len(set(said)) > 1
    ids = [each.id for choice in answer.choices for each in choice.message.tool_calls]
    assert len(set(ids)) == 3


def test_a_call_that_max_tokens_cuts_says_so(tooled: Any) -> None:
    assert call(tooled, tool_choice="required", max_tokens=40).choices[0].finish_reason == "length"


@pytest.mark.parametrize(
    ("route", "tool"), [("chat/completions", NOW), ("responses", {"type": "function", "name": "now"})]
)
def test_ignore_eos_and_tools_contradict_each_other(tooled: Any, route: str, tool: Any) -> None:
    response = tooled.post(route, model="own-template", tools=[tool], ignore_eos=True)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "ignore_eos")


def test_a_strict_schema_with_a_keyword_that_cannot_be_kept_to_is_refused(tooled: Any) -> None:
    odd = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
    tool: Any = {"type": "function", "function": {"name": "odd", "parameters": odd, "strict": True}}
    message = r'tools: parameters of "odd": /properties/a/uniqueItems: not supported\.'
    with pytest.raises(openai.BadRequestError, match=message):
        call(tooled, tools=[tool])


class Place(BaseModel):
    """What LangChain has the model call."""

    city: str = Field(max_length=6, pattern="^[a-z]*$")


def test_langchain_s_function_calling_gives_structured_output(tooled: Any) -> None:
    chat = ChatOpenAI(
        model="own-template",
        base_url=tooled.url + "/v1",
        api_key="author",  # type: ignore[arg-type]
        max_retries=0,
        max_tokens=CONTEXT_LENGTH // 2,
        seed=3,
    )
    place = chat.with_structured_output(Place, method="function_calling", strict=True).invoke("?")
    assert isinstance(place, Place)
    said = chat.bind_tools([Place], tool_choice="required", strict=True, parallel_tool_calls=False).invoke(
        "?"
    )
    assert [each["name"] for each in said.tool_calls] == ["Place"]


TAGS = (
    "\n<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments.items() %}"
    "<parameter={{ k }}>\n{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}"
    "</function>\n</tool_call>{% endfor %}{% endfor %}:"
)
MAIL: Any = {
    "type": "function",
    "function": {
        "name": "mail",
        "parameters": {
            "type": "object",
            "properties": {"body": {"type": "string", "minLength": 145, "maxLength": 150}},
            "required": ["body"],
            "additionalProperties": False,
        },
    },
}


@pytest.mark.parametrize("seed", range(3))
def test_a_long_tagged_argument_is_found_as_clients_hold_it(serve: Any, engine: Any, seed: int) -> None:
    """As its text, and hardly as JSON that is written anew, here with an escape for every third character."""
    service = serve(build_service(engine, template=ChatTemplate(KNOWS_TOOLS.partition("\n")[0] + TAGS)))
    answer = call(
        service, tools=[MAIL], tool_choice="required", seed=seed, max_tokens=240, extra_body={"top_k": 40}
    )
    arguments = answer.choices[0].message.tool_calls[0].function.arguments
    text, key = json.loads(arguments)["body"], service.own_keys["acme-main"]
    as_text, as_json, not_marked = (
        detect_likelihood(
            key.profile.watermark(), key.primary.prf_keys, engine.tokenizer.encode(held)
        ).log10_p
        for held in (text, arguments, arguments[::-1])
    )
    assert as_text < -40 < as_json
    assert not_marked > -3
