"""Answers that a program can read: `response_format` with the official client and with LangChain."""

import json
import threading
import time
from typing import Annotated, Any, Literal

import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, ConfigDict, Field

from ttmark.gen_service.features.structured import structured_outputs

MESSAGES: Any = [{"role": "user", "content": "Who?"}]
Name = Annotated[str, Field(min_length=1, max_length=8, pattern="^[a-z]*$")]


class Pet(BaseModel):
    """What the tiny model is to describe; bounded, so that it comes to an end."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    kind: Literal["cat", "dog"]
    age: Annotated[int, Field(ge=0, le=30)] | None
    friends: Annotated[list[Name], Field(max_length=2)]


@pytest.fixture
def langchain(real: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="tiny", base_url=real.url + "/v1", api_key="author", max_retries=0, max_tokens=200, seed=3
    )


def post(service: Any, response_format: Any, **more: Any) -> Any:
    body = {"model": "tiny", "messages": MESSAGES, "response_format": response_format, "seed": 1, **more}
    return service.http().post("/v1/chat/completions", json=body)


def schema_of(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def test_a_schema_may_stand_right_beside_json_object_as_llama_cpp_takes_it(real: Any) -> None:
    dialect = {"type": "json_object", "schema": Pet.model_json_schema()}
    answers = [post(real, form).json() for form in (dialect, schema_of(Pet.model_json_schema()))]
    assert len({answer["choices"][0]["message"]["content"] for answer in answers}) == 1
    Pet.model_validate_json(answers[0]["choices"][0]["message"]["content"])


@pytest.mark.parametrize("seed", range(2))
def test_the_official_client_parses_an_answer(real: Any, seed: int) -> None:
    completion = real.client().chat.completions.parse(
        model="tiny", messages=MESSAGES, response_format=Pet, seed=seed
    )
    message = completion.choices[0].message
    assert isinstance(message.parsed, Pet)
    assert message.content
    assert completion.choices[0].finish_reason == "stop"
    assert completion.model_extra["watermark"]["status"] in ("watermarked", "partial")


def test_the_official_client_streams_an_answer(real: Any) -> None:
    options: Any = {"model": "tiny", "messages": MESSAGES, "response_format": Pet, "seed": 5}
    with real.client().chat.completions.stream(**options) as stream:
        streamed = stream.get_final_completion().choices[0].message.parsed
    assert streamed == real.client().chat.completions.parse(**options).choices[0].message.parsed


@pytest.mark.parametrize("seed", range(2))
def test_the_responses_api_gives_the_answer_of_the_chat_api_parsed(real: Any, seed: int) -> None:
    client = real.client()
    options: Any = {"model": "tiny", "input": "Who?", "text_format": Pet, "extra_body": {"seed": seed}}
    response = client.responses.parse(**options)
    assert isinstance(response.output_parsed, Pet)
    assert (response.status, response.text.format.name) == ("completed", "Pet")
    chat = client.chat.completions.parse(model="tiny", messages=MESSAGES, response_format=Pet, seed=seed)
    assert response.output_text == chat.choices[0].message.content
    with client.responses.stream(**options) as stream:
        parsed = [event.parsed for event in stream if event.type == "response.output_text.done"]
        assert stream.get_final_response().output_parsed == response.output_parsed == parsed[0]


def test_an_answer_that_max_tokens_cuts_is_told_apart(real: Any) -> None:
    with pytest.raises(openai.LengthFinishReasonError):
        real.client().chat.completions.parse(
            model="tiny", messages=MESSAGES, response_format=Pet, max_tokens=5, seed=1
        )


def test_several_answers_to_one_request_are_valid_each(real: Any) -> None:
    answer = post(real, schema_of(Pet.model_json_schema()), n=3).json()
    texts = [choice["message"]["content"] for choice in answer["choices"]]
    assert len(set(texts)) == 3
    for text in texts:
        Pet.model_validate_json(text)


def test_langchain_gives_structured_output(langchain: ChatOpenAI) -> None:
    assert isinstance(langchain.with_structured_output(Pet).invoke("Who?"), Pet)


def test_langchains_json_mode_gives_an_object(langchain: ChatOpenAI) -> None:
    # Any object: a random model would go on for ever, so that commas and free text are made unlikely.
    bias = {str(token): -100 for token in range(256)} | {str(ord("}") - 33): 100, "256": 100}
    chat = langchain.bind(logit_bias=bias, temperature=0)
    assert json.loads(str(chat.bind(response_format={"type": "json_object"}).invoke("Who?").content)) == {}


@pytest.mark.parametrize("response_format", [None, {"type": "text"}])
def test_text_is_what_comes_without_a_format(real: Any, response_format: Any) -> None:
    plain = real.client().chat.completions.create(model="tiny", messages=MESSAGES, seed=1, max_tokens=8)
    answer = post(real, response_format, max_tokens=8).json()
    assert answer["choices"][0]["message"]["content"] == plain.choices[0].message.content


BAD_FORMATS: list[Any] = [
    {"type": "grammar"},
    {},
    "json_object",
    {"type": "json_schema"},
    {"type": "json_schema", "json_schema": {"name": "a"}},
    schema_of("object"),
    {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}},
    schema_of({"type": "array", "uniqueItems": True}),
    schema_of({"type": "string", "pattern": "("}),
    schema_of({"type": "number", "multipleOf": True}),
    schema_of({"enum": [f"value {i}" for i in range(6000)]}),
]


@pytest.mark.parametrize("response_format", BAD_FORMATS, ids=range(len(BAD_FORMATS)))
def test_a_format_that_cannot_be_kept_to_is_refused_by_name(real: Any, response_format: Any) -> None:
    response = post(real, response_format)
    assert response.status_code == 400
    assert response.json()["error"]["param"].startswith("response_format")
    assert "response_format" in response.json()["error"]["message"]
    assert ("uniqueItems" in response.text) == ("uniqueItems" in str(response_format))
    if isinstance(response_format, dict):  # the other API has the schema beside the type
        form = {key: value for key, value in response_format.items() if key != "json_schema"}
        form |= response_format.get("json_schema", {})
        body = {"model": "tiny", "input": "Who?", "text": {"format": form}}
        response = real.http().post("/v1/responses", json=body)
        assert (response.status_code, response.json()["error"]["param"][:11]) == (400, "text.format")


def test_ignore_eos_and_a_format_contradict_each_other(real: Any) -> None:
    form = {"type": "json_object"}
    body = {"model": "tiny", "input": "Who?", "text": {"format": form}, "ignore_eos": True}
    for response in (post(real, form, ignore_eos=True), real.http().post("/v1/responses", json=body)):
        assert (response.status_code, response.json()["error"]["param"]) == (400, "ignore_eos")


@pytest.mark.long
def test_other_requests_go_on_while_a_schema_is_prepared_and_it_is_given_up_in_time(real, monkeypatch):
    monkeypatch.setattr(structured_outputs, "COMPILE_SECONDS", 0.3)
    slow = threading.Event()
    held = threading.Event()

    def hold(*_: Any) -> None:
        held.set()
        slow.wait(10)

    monkeypatch.setattr(
        "ttmark.gen_service.features.structured.grammars.json_grammar.JsonGrammars.compile", hold
    )
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(post(real, schema_of({}))))
    asking.start()
    assert held.wait(5)
    neighbour = post(real, schema_of({"type": "integer"}))
    assert (neighbour.status_code, neighbour.headers.get("retry-after")) == (503, "1")
    started = time.monotonic()
    real.client().chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=4)
    assert time.monotonic() - started < 5
    asking.join()
    slow.set()
    assert answers[0].status_code == 400
    assert answers[0].json()["error"]["param"] == "response_format"
