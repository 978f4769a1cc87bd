"""The official client's Responses API, streamed and not, over the same pipeline as the other routes."""

import json
from typing import Any

import openai
import pytest
from openai.types.responses import Response

MODEL = "tiny"
NARROW = {"top_k": 4, "ignore_eos": True}
REQUEST: dict[str, Any] = {"model": MODEL, "input": "Hello", "max_output_tokens": 12}
TYPES = [
    "response.created", "response.in_progress", "response.output_item.added",
    "response.content_part.added", "response.output_text.delta", "response.output_text.done",
    "response.content_part.done", "response.output_item.done",
]  # fmt: skip


def test_a_response_has_text_usage_and_a_watermark(service: Any) -> None:
    response = service.client().responses.create(**REQUEST, extra_body=NARROW)
    assert response.id.startswith("resp_")
    assert response.object == "response"
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text == response.output[0].content[0].text != ""
    assert response.output[0].id.startswith("msg_")
    assert response.usage.input_tokens == service.tokens("<user>Hello\n<assistant>")
    assert response.usage.output_tokens == 12
    assert response.usage.total_tokens == response.usage.input_tokens + 12
    assert response.usage.output_tokens_details.reasoning_tokens == 0
    watermark = response.model_extra["watermark"]
    assert watermark["status"] in ("watermarked", "partial")
    assert (watermark["key_id"], watermark["blocks"]) == ("acme-main", 6)


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_is_what_the_client_s_types_want(service: Any, stream: bool) -> None:
    answer = service.http().post("/v1/responses", json=REQUEST | NARROW | {"stream": stream})
    body = json.loads(answer.text.split("data: ")[-1])["response"] if stream else answer.json()
    Response.model_validate(body, strict=True)
    assert body["store"] is False
    assert body["created_at"] > 1.7e9


def test_the_answer_is_the_chat_answer_with_the_same_seed(service: Any) -> None:
    client = service.client()
    extra = NARROW | {"seed": 5}
    messages: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello\nAnn"}]
    parts = [{"type": "input_text", "text": text} for text in ("Hello", "Ann")]
    chat = client.chat.completions.create(model=MODEL, messages=messages, max_tokens=12, extra_body=extra)
    forms: list[dict[str, Any]] = [
        {"instructions": "Be brief.", "input": "Hello\nAnn"},
        {"input": messages},
        {"input": [messages[0], {"role": "user", "content": parts}]},
        {"input": [{"type": "message", **message} for message in messages]},
    ]
    for form in forms:
        response = client.responses.create(model=MODEL, max_output_tokens=12, extra_body=extra, **form)
        assert response.output_text == chat.choices[0].message.content
        assert response.model_extra["watermark"] == chat.model_extra["watermark"]


def test_the_output_of_a_response_goes_into_the_next_request(service: Any) -> None:
    client = service.client()
    first = client.responses.create(**REQUEST, extra_body=NARROW)
    conversation = [
        {"role": "user", "content": "Hello"},
        *(item.to_dict() for item in first.output),
        {"role": "user", "content": "And?"},
    ]
    second = client.responses.create(model=MODEL, input=conversation, max_output_tokens=8, extra_body=NARROW)
    before = f"<user>Hello\n<assistant>{first.output_text}\n<user>And?\n<assistant>"
    assert second.usage.input_tokens == service.tokens(before)


def test_a_stream_has_the_events_of_the_api_in_order(service: Any) -> None:
    client = service.client()
    request = REQUEST | {"extra_body": NARROW | {"seed": 3}}
    whole = client.responses.create(**request)
    events = list(client.responses.create(**request, stream=True))
    assert list(dict.fromkeys(event.type for event in events)) == [*TYPES, "response.incomplete"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == whole.output_text == events[-1].response.output_text
    assert events[-1].response.model_extra["watermark"] == whole.model_extra["watermark"]
    assert events[-1].response.usage == whole.usage
    assert {event.response.id for event in (events[0], events[1], events[-1])} == {events[0].response.id}
    assert "watermark" not in events[0].response.model_extra


def test_each_event_names_its_type_in_a_line_of_its_own(service: Any) -> None:
    with service.http().stream("POST", "/v1/responses", json=REQUEST | {"stream": True}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        blocks = "".join(response.iter_text()).strip().split("\n\n")
    for block in blocks:
        name, data = block.splitlines()
        assert name.removeprefix("event: ") == json.loads(data.removeprefix("data: "))["type"]


def test_the_client_s_stream_helper_gives_the_whole_response(service: Any) -> None:
    client = service.client()
    text = client.responses.create(**REQUEST, extra_body=NARROW | {"seed": 3}).output_text
    stop = next(letter for letter in text[4:] if letter != "\ufffd")
    extra = NARROW | {"seed": 3, "stop": [stop]}
    with client.responses.stream(**REQUEST, extra_body=extra) as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert final.status == "completed"
    assert final.incomplete_details is None
    assert final.output_text == snapshots[-1] == text[: text.index(stop)]


def test_metadata_comes_back_and_what_was_asked_for_is_told(service: Any) -> None:
    response = service.client().responses.create(
        **REQUEST, metadata={"topic": "tests"}, temperature=0.5, top_p=0.9, store=False, user="someone"
    )
    assert response.metadata == {"topic": "tests"}
    assert (response.temperature, response.top_p, response.max_output_tokens) == (0.5, 0.9, 12)


def test_token_ids_come_with_the_message_if_asked_for(service: Any) -> None:
    extra = NARROW | {"return_token_ids": True}
    client = service.client()
    for response in (
        client.responses.create(**REQUEST, extra_body=extra),
        list(client.responses.create(**REQUEST, extra_body=extra, stream=True))[-1].response,
    ):
        message = response.output[0].model_extra
        assert len(message["token_ids"]) == 12
        assert len(message["prompt_token_ids"]) == response.usage.input_tokens


def test_the_watermark_options_are_those_of_the_other_routes(service: Any) -> None:
    def create(token: str, watermark: Any, **more: Any) -> Any:
        answer = service.client(token).responses.create(
            **REQUEST, extra_body={"watermark": watermark}, **more
        )
        return answer.model_extra["watermark"]

    assert create("author", {"key_id": "acme-spare"})["key_id"] == "acme-spare"
    assert create("operator", {"enabled": False})["reasons"].keys() == {"disabled"}
    assert create("author", None, temperature=0)["reasons"].keys() == {"greedy"}
    with pytest.raises(openai.PermissionDeniedError):
        create("author", {"enabled": False})
    with pytest.raises(openai.InternalServerError, match="no key"):
        create("keyless", None)


def test_a_response_is_audited_under_its_route(fake: Any) -> None:
    fake.client().responses.create(**REQUEST)
    asked, written = fake.audit
    assert {asked.said.get("route"), written.said.get("route")} == {"/v1/responses"}
    assert (asked.said.get("key_id"), written.said.get("tokens")) == ("acme-main", 12)


def test_a_failure_in_a_stream_is_told_and_ends_the_response(fake: Any) -> None:
    fake.generator.failure = RuntimeError("secret")
    *_, error, failed = fake.client().responses.create(**REQUEST, stream=True)
    assert (error.type, error.code) == ("error", "internal_error")
    assert (failed.type, failed.response.status) == ("response.failed", "failed")
    assert failed.response.error.code == "server_error"
    assert failed.sequence_number == error.sequence_number + 1
    assert "secret" not in failed.to_json() + error.to_json()
