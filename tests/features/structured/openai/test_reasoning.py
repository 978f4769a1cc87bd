"""Models that reason before they answer: reasoning and answer apart, whole and streamed."""

import json
from typing import Any

import pytest
from openai.types.responses import Response

from tests.contract.openai.composed import build_service
from tests.contract.openai.tools import KNOWS_TOOLS, NOW, WEATHER, Scripted
from tests.features.structured.openai.test_structured_output import MESSAGES, Pet
from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.features.manifests.provenance import Labels
from ttmark.shared.labels import Label

KNOWS = (
    "{% for m in messages %}{{ m.role[0] }}"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}{% endfor %}:"
)
OPENS = KNOWS + "<think>\n"
PLAIN = "{% for m in messages %}{{ m.content }}{% endfor %}"
THOUGHT = "<think>\nHm </thin ho.\n</think>\n\nThe answer is yes."
CHAT: dict[str, Any] = {"model": "own-template", "messages": [{"role": "user", "content": "?"}]}
CASES: dict[str, tuple[str, str, str | None, str | None, int]] = {
    "both": (KNOWS, THOUGHT, "Hm </thin ho.", "The answer is yes.", 30),
    "opened by the prompt": (OPENS, "Hm\n</think>\n\nYes.", "Hm", "Yes.", 11),
    "without end": (KNOWS, "<think>Hm, hm", "Hm, hm", None, 13),
    "empty": (KNOWS, "<think>\n\n</think>\n\nYes.", None, "Yes.", 17),
    "none": (KNOWS, "Yes, <think> no", None, "Yes, <think> no", 0),
    "no such template": (PLAIN, THOUGHT, None, THOUGHT, 0),
}


@pytest.fixture(scope="module")
def says(serve: Any) -> Any:

    def make(text: str, template: str = KNOWS, **more: Any) -> Any:
        generator = Scripted()
        generator.TEXT = text  # type: ignore[misc]
        return serve(build_service(generator, template=ChatTemplate(template), **more))

    return make


@pytest.mark.parametrize("case", CASES)
def test_the_chat_answer_has_reasoning_and_content_apart(says: Any, case: str) -> None:
    template, text, reasoning, content, tokens = CASES[case]
    client = says(text, template).client()
    answer = client.chat.completions.create(**CHAT)
    message = answer.choices[0].message
    assert (message.model_extra.get("reasoning_content"), message.content) == (reasoning, content)
    assert answer.usage.completion_tokens == len(text)
    assert answer.usage.completion_tokens_details.reasoning_tokens == tokens
    chunks = list(client.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True}))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.model_extra.get("reasoning_content", "") for delta in deltas) == (reasoning or "")
    assert "".join(delta.content or "" for delta in deltas) == (content or "")
    assert chunks[-1].usage.completion_tokens_details == answer.usage.completion_tokens_details


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_has_reasoning_as_an_item_in_front_of_the_message(says: Any, stream: bool) -> None:
    service = says(THOUGHT)
    body = {"model": "own-template", "input": "?", "stream": stream}
    raw = service.http().post("/v1/responses", json=body).text
    answer = json.loads(raw.split("data: ")[-1])["response"] if stream else json.loads(raw)
    response = Response.model_validate(answer, strict=True)
    reasoning, message = response.output
    assert (reasoning.type, reasoning.content[0].text) == ("reasoning", "Hm </thin ho.")
    assert (message.type, response.output_text) == ("message", "The answer is yes.")
    assert response.usage.output_tokens_details.reasoning_tokens == 30
    events = [line.removeprefix("event: ") for line in raw.splitlines() if line.startswith("event: ")]
    item = ["output_item.added", "content_part.added", "{}.delta", "{}.done"]
    item += ["content_part.done", "output_item.done"]
    kinds = [f"response.{each.format(kind)}" for kind in ("reasoning_text", "output_text") for each in item]
    runs = [kind for number, kind in enumerate(events) if number == 0 or kind != events[number - 1]]
    assert runs[2:-1] == (kinds if stream else [])
    history = [{"role": "user", "content": "?"}, *answer["output"], {"role": "user", "content": "!"}]
    second = service.client().responses.create(model="own-template", input=history)
    assert second.usage.input_tokens == len("u?a<think>Hm </thin ho.</think>The answer is yes.u!:")


def test_a_history_with_reasoning_is_taken(says: Any) -> None:
    service = says(THOUGHT)
    thought = {"role": "assistant", "reasoning_content": "Hm", "content": None}
    history = [*CHAT["messages"], thought, {"role": "user", "content": "!"}]
    answer = service.http().post("/v1/chat/completions", json=CHAT | {"messages": history})
    assert answer.json()["usage"]["prompt_tokens"] == len("u?a<think>Hm</think>u!:")


def test_calls_come_after_reasoning_and_a_tag_in_it_opens_none(says: Any) -> None:
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    client = says(f"<think>A {call}?</think>\n\nSo. {call}", KNOWS_TOOLS + "{# </think> #}").client()
    options: Any = CHAT | {"tools": [WEATHER, NOW]}
    with client.chat.completions.stream(**options) as stream:
        streamed = stream.get_final_completion().choices[0]
    for choice in (client.chat.completions.create(**options).choices[0], streamed):
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "So. ")
        assert [each.function.name for each in choice.message.tool_calls] == ["now"]
        assert choice.message.model_extra["reasoning_content"] == f"A {call}?"


def test_receipt_and_label_are_of_the_answer_alone(says: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def scored(request: Any, text: str, tokenizer: Any) -> float:
        seen.append(text)
        return -3.0

    monkeypatch.setattr("ttmark.gen_service.api.account.scored", scored)
    service = says(THOUGHT, hooks=[Labels(Label("AI", "start"))])
    answer = service.client("auditor").chat.completions.create(**CHAT)
    assert seen == [answer.choices[0].message.content] == ["AI\n\nThe answer is yes."]
    assert answer.model_extra["watermark"]["log10_p"] == -3.0


def test_structured_output_is_parsed_where_the_model_may_reason(serve: Any, engine: Any) -> None:
    service = serve(build_service(engine, template=ChatTemplate(KNOWS)))
    banned = {str(token): -100 for text in ("<", " ", "\n", " <") for token in engine.tokenizer.encode(text)}
    parsed = service.client().chat.completions.parse(
        model="own-template",
        messages=MESSAGES,
        response_format=Pet,
        seed=1,
        # A random model would reason for ever.
        extra_body={"logit_bias": banned},
    )
    assert isinstance(parsed.choices[0].message.parsed, Pet)
