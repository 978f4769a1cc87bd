"""Bad input gets the documented error with the field named, and never a 500."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ttmark.shared.http.service_errors import ServiceError

GOOD_COMPLETION = {"model": "tiny", "prompt": "Once", "max_tokens": 4}
GOOD_RESPONSE = {"model": "tiny", "input": "Hi", "max_output_tokens": 4}
GOOD_CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}

INVALID = "invalid_request"


def bad(param: str) -> tuple[int, str, str | None]:
    return 400, INVALID, param


# change to a good request: (status, code, param)
BAD_COMPLETIONS: list[tuple[dict[str, Any], tuple[int, str, str | None]]] = [
    ({"prompt": ""}, bad("prompt")),
    ({"prompt": ["a", ""]}, bad("prompt")),
    ({"prompt": [[]]}, bad("prompt")),
    ({"prompt": [-1]}, bad("prompt")),
    ({"prompt": [999_999]}, bad("prompt")),
    ({"prompt": [[1], [2**40]]}, bad("prompt")),
    ({"prompt": ["a", 1]}, bad("prompt")),
    ({"prompt": {"text": "a"}}, bad("prompt")),
    ({"prompt": ["a"] * 9}, bad("prompt")),
    ({"prompt": ["a"] * 5, "n": 2}, bad("prompt")),
    ({"max_tokens": 0}, bad("max_tokens")),
    ({"max_tokens": "4"}, bad("max_tokens")),
    ({"max_tokens": 4.5}, bad("max_tokens")),
    ({"max_tokens": 10**30}, (400, "context_length_exceeded", "max_tokens")),
    ({"max_tokens": 256}, (400, "context_length_exceeded", "max_tokens")),
    ({"prompt": "x " * 256}, (400, "context_length_exceeded", "max_tokens")),
    ({"model": "gpt-9"}, (404, "model_not_found", "model")),
    ({"model": ""}, bad("model")),
    ({"model": "a/../b\x00"}, (404, "model_not_found", "model")),
    ({"n": 0}, bad("n")),
    ({"n": 17}, bad("n")),
    ({"n": True}, bad("n")),
    ({"best_of": 2}, bad("best_of")),
    ({"suffix": "end"}, bad("suffix")),
    ({"temperature": -0.1}, bad("temperature")),
    ({"temperature": 2.1}, bad("temperature")),
    ({"temperature": "hot"}, bad("temperature")),
    ({"top_p": 0}, bad("top_p")),
    ({"top_p": 1.5}, bad("top_p")),
    ({"top_k": -2}, bad("top_k")),
    ({"min_p": 2}, bad("min_p")),
    ({"presence_penalty": 3}, bad("presence_penalty")),
    ({"frequency_penalty": -3}, bad("frequency_penalty")),
    ({"repetition_penalty": 0.9}, bad("repetition_penalty")),
    ({"repetition_penalty": 2.1}, bad("repetition_penalty")),
    ({"stop": ""}, bad("stop")),
    ({"stop": ["a", ""]}, bad("stop")),
    ({"stop": ["a"] * 5}, bad("stop")),
    ({"seed": 1.5}, bad("seed")),
    ({"logprobs": 21}, bad("logprobs")),
    ({"logprobs": True}, bad("logprobs")),
    ({"logprobs": 1, "echo": True}, bad("logprobs")),
    ({"logit_bias": {"1": 101}}, bad("logit_bias")),
    ({"logit_bias": {"a": 1}}, bad("logit_bias")),
    ({"logit_bias": {"999999": 1}}, bad("logit_bias")),
    ({"logit_bias": {str(i): 1 for i in range(1025)}}, bad("logit_bias")),
    ({"stream": "yes"}, bad("stream")),
    ({"stream_options": []}, bad("stream_options")),
    ({"stream_options": {"include_usage": 1}}, bad("stream_options.include_usage")),
    ({"watermark": True}, bad("watermark")),
    ({"watermark": {"key_id": 5}}, bad("watermark.key_id")),
    ({"watermark": {"key_id": "nobody's"}}, (404, "key_not_found", "watermark.key_id")),
    ({"watermark": {"enabled": False}}, (403, "insufficient_scope", None)),
    ({"watermark": {"enable": False}}, bad("watermark.enable")),
    ({"watermark": {"enabled": True, "keyid": "acme-main"}}, bad("watermark.keyid")),
    ({"watermark": {"x" * 5_000: 1}}, bad(f"watermark.{'x' * 64}")),
    ({"watermark": {str(n): 1 for n in range(5_000)}}, bad("watermark.0")),
]
BAD_CHATS: list[tuple[dict[str, Any], tuple[int, str, str | None]]] = [
    ({"messages": []}, bad("messages")),
    ({"watermark": {"enable": False}}, bad("watermark.enable")),
    ({"messages": "Hi"}, bad("messages")),
    ({"messages": [{}]}, bad("messages[0].role")),
    ({"messages": [{"role": "tool", "content": "1"}]}, bad("messages[0].tool_call_id")),
    ({"messages": [{"role": "user", "content": None}]}, bad("messages[0].content")),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, bad("messages[0].content")),
    ({"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]}, bad("messages")),
    ({"messages": [{"role": "user", "content": "x " * 300}]}, (400, "context_length_exceeded", "messages")),
    ({"max_tokens": 250}, (400, "context_length_exceeded", "max_tokens")),
    ({"model": "untold"}, (400, "unsupported_feature", "messages")),
    ({"max_tokens": 0}, bad("max_tokens")),
    ({"max_completion_tokens": 0}, bad("max_completion_tokens")),
    ({"tools": [{"type": "function"}]}, bad("tools[0].function")),
    ({"functions": [{}]}, bad("functions")),
    ({"response_format": {"type": "gramar"}}, bad("response_format")),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        bad("response_format.json_schema.name"),
    ),
    ({"modalities": ["audio"]}, bad("modalities")),
    (
        {
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "tool", "tool_call_id": "b", "content": "c"},
            ]
        },
        bad("messages"),
    ),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]},
        bad("tools[0].function.parameters"),
    ),
    ({"tool_choice": "required"}, bad("tool_choice")),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, bad("tool_choice")),
    ({"function_call": {"name": "f"}}, bad("function_call")),
    ({"reasoning_effort": "high"}, bad("reasoning_effort")),
    ({"verbosity": "low"}, bad("verbosity")),
    ({"store": True}, bad("store")),
    ({"store": 0}, bad("store")),
    ({"audio": {"voice": "alloy", "format": "wav"}}, bad("audio")),
    ({"moderation": {"model": "omni"}}, bad("moderation")),
    ({"web_search_options": {}}, bad("web_search_options")),
    ({"top_logprobs": 3}, bad("top_logprobs")),
    ({"logprobs": True, "top_logprobs": 21}, bad("top_logprobs")),
    ({"logprobs": 1}, bad("logprobs")),
]
BAD_RESPONSES: list[tuple[dict[str, Any], tuple[int, str, str | None]]] = [
    ({"input": None}, bad("input")),
    ({"watermark": {"enable": False}}, bad("watermark.enable")),
    ({"input": ""}, bad("input")),
    ({"input": []}, bad("input")),
    ({"input": [{"role": "tool", "content": "a"}]}, bad("input[0].role")),
    ({"input": [{"type": "function_call_output", "output": "b"}]}, bad("input")),
    ({"input": [{"type": "function_call_output", "call_id": "a", "output": "b"}]}, bad("input")),
    ({"input": [{"type": "function_call", "call_id": "a", "name": "b"}]}, bad("input")),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "a"}]}]}, bad("input")),
    ({"instructions": ["a"]}, bad("instructions")),
    ({"instructions": "a", "input": [{"role": "system", "content": "b"}]}, bad("input")),
    ({"input": "x " * 300}, (400, "context_length_exceeded", "input")),
    ({"max_output_tokens": 0}, bad("max_output_tokens")),
    ({"max_output_tokens": 250}, (400, "context_length_exceeded", "max_output_tokens")),
    ({"model": "untold"}, (400, "unsupported_feature", "input")),
    ({"model": "gpt-9"}, (404, "model_not_found", "model")),
    ({"temperature": 3}, bad("temperature")),
    ({"metadata": {"a": 1}}, bad("metadata")),
    ({"metadata": {str(i): "a" for i in range(17)}}, bad("metadata")),
    ({"text": {"format": {"type": "grammar"}}}, bad("text.format")),
    ({"text": {"format": {"type": "json_schema", "name": "a"}}}, bad("text.format.json_schema.schema")),
    ({"text": {"verbosity": "low"}}, bad("text.verbosity")),
    ({"reasoning": {"effort": "high"}}, bad("reasoning.effort")),
    ({"store": True}, bad("store")),
    ({"background": True}, bad("background")),
    ({"previous_response_id": "resp_1"}, bad("previous_response_id")),
    ({"conversation": "conv_1"}, bad("conversation")),
    ({"tools": [{"type": "web_search"}]}, bad("tools[0].type")),
    ({"watermark": {"key_id": "nobody's"}}, (404, "key_not_found", "watermark.key_id")),
    ({"watermark": {"enabled": False}}, (403, "insufficient_scope", None)),
]


def _check(response: Any, expected: tuple[int, str, str | None]) -> None:
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == expected
    assert error["message"]
    assert error["type"]


def _name(case: Any) -> str:
    return str(case)[:50] if isinstance(case, dict) else ""


@pytest.mark.parametrize(("change", "expected"), BAD_COMPLETIONS, ids=_name)
def test_a_bad_completion_request_is_refused_by_field(
    service: Any, change: dict[str, Any], expected: tuple[int, str, str | None]
) -> None:
    _check(service.http().post("/v1/completions", json=GOOD_COMPLETION | change), expected)


@pytest.mark.parametrize(("change", "expected"), BAD_CHATS, ids=_name)
def test_a_bad_chat_request_is_refused_by_field(
    service: Any, change: dict[str, Any], expected: tuple[int, str, str | None]
) -> None:
    _check(service.http().post("/v1/chat/completions", json=GOOD_CHAT | change), expected)


@pytest.mark.parametrize(("change", "expected"), BAD_RESPONSES, ids=_name)
def test_a_bad_request_for_a_response_is_refused_by_field(
    service: Any, change: dict[str, Any], expected: tuple[int, str, str | None]
) -> None:
    _check(service.http().post("/v1/responses", json=GOOD_RESPONSE | change), expected)


def test_an_unknown_field_of_no_characters_is_a_400(service: Any) -> None:
    body = b'{"model": "tiny", "prompt": "a", "watermark": {"\\ud800": 1}}'
    headers = {"Content-Type": "application/json"}
    assert service.http().post("/v1/completions", content=body, headers=headers).status_code == 400


def test_numbers_appear_in_the_message_about_the_context_length(fake: Any) -> None:
    asked = GOOD_COMPLETION | {"max_tokens": 255}
    message = fake.http().post("/v1/completions", json=asked).json()["error"]["message"]
    assert message == (
        "This model's maximum context length is 256 tokens. The prompt has 4 tokens and max_tokens is 255, "
        "together 3 tokens over."
    )


@pytest.mark.parametrize(
    ("path", "change", "said"),
    [
        ("/v1/completions", {"max_tokens": 253}, "together 1 token over."),
        ("/v1/completions", {"prompt": [1] * 260}, "The prompt has 260 tokens, 4 tokens over."),
        ("/v1/chat/completions", {"max_tokens": 256}, "tokens over."),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "x" * 256}], "max_tokens": None},
            "tokens over what leaves room for an answer.",
        ),
        ("/v1/responses", {"max_output_tokens": 256}, "tokens over."),
    ],
)
def test_a_full_context_is_said_before_a_stream_begins_with_the_tokens_over(
    engine_service: Any, path: str, change: dict[str, Any], said: str
) -> None:
    good = {"/v1/completions": GOOD_COMPLETION, "/v1/responses": GOOD_RESPONSE}.get(path, GOOD_CHAT)
    answer = engine_service.http().post(path, json=good | change | {"stream": True})
    assert answer.headers["Content-Type"] == "application/json"
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "context_length_exceeded")
    assert error["message"].startswith("This model's maximum context length is 256 tokens. ")
    assert error["message"].endswith(said)


def test_a_body_over_the_limit_is_a_413(fake: Any) -> None:
    response = fake.http().post("/v1/completions", json=GOOD_COMPLETION | {"user": "x" * 100_000})
    _check(response, (413, "request_too_large", None))


def test_fields_without_effect_on_the_text_are_taken(service: Any) -> None:
    extra = {"metadata": {"a": [1]}, "service_tier": "auto", "store": False}
    assert service.http().post("/v1/completions", json=GOOD_COMPLETION | extra).status_code == 200


def test_a_whole_number_may_be_written_with_a_fraction_of_zero(service: Any) -> None:
    body = b'{"model": "tiny", "prompt": [65.0, 66], "max_tokens": 4.0, "n": 1.0, "seed": 1e3}'
    response = service.http().post(
        "/v1/completions", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 200


def test_null_means_unset(service: Any) -> None:
    fields = ["temperature", "top_p", "top_k", "min_p", "n", "stop", "seed", "presence_penalty"]
    fields += ["frequency_penalty", "logit_bias", "stream", "stream_options", "user", "ignore_eos"]
    fields += ["repetition_penalty", "return_token_ids", "watermark", "echo", "logprobs", "best_of", "suffix"]
    response = service.http().post("/v1/completions", json=GOOD_COMPLETION | dict.fromkeys(fields))
    assert response.status_code == 200


@pytest.mark.parametrize("text", ["\x00", "\u202e\u200b\ufeff", "e\u0301" * 3, "👩‍👩‍👧", "\ufffd"])
def test_unusual_characters_are_text_like_any_other(service: Any, text: str) -> None:
    response = service.http().post("/v1/completions", json=GOOD_COMPLETION | {"prompt": text, "echo": True})
    assert response.json()["choices"][0]["text"].startswith(text)


def test_the_guide_lists_every_error_code_that_a_route_can_answer_with() -> None:
    guide = Path(__file__).parents[3].joinpath("docs", "generation.md").read_text()
    codes = set(re.findall(r"`([a-z_]+)`", guide[guide.index("## Errors") :]))
    # Not of these routes: paths and methods that do not exist, problem documents, and idempotency keys.
    others = {
        "conflict", "request_in_progress", "already_gone", "idempotency_key_reused", "not_found",
        "method_not_allowed", "invalid_field", "unavailable", "internal_error", "too_much_work",
    }  # fmt: skip
    assert {error.code for error in _tree(ServiceError)} - others <= codes


def _tree(root: type[ServiceError]) -> Iterator[type[ServiceError]]:
    for child in root.__subclasses__():
        yield child
        yield from _tree(child)


@pytest.mark.parametrize(
    ("path", "prompt", "param"),
    [
        ("/v1/completions", {"prompt": "a" * 90_000}, "prompt"),
        ("/v1/completions", {"prompt": [[7], [7] * 20_000]}, "prompt"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a" * 90_000}]}, "messages"),
        ("/v1/responses", {"input": "a" * 90_000}, "input"),
    ],
)
def test_what_cannot_fit_the_context_is_refused_before_it_is_tokenised(
    fake: Any, monkeypatch: pytest.MonkeyPatch, path: str, prompt: dict[str, Any], param: str
) -> None:
    def tokenised(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was tokenised")

    monkeypatch.setattr("ttmark.gen_service.api.prompts._from_text", tokenised)
    monkeypatch.setattr("ttmark.shared.tokenization.TextTokenizer.decode", tokenised)
    monkeypatch.setattr("ttmark.gen_service.api.control_tokens.ConversationEncoder.encode", tokenised)
    response = fake.http().post(path, json={"model": "tiny"} | prompt)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", param)
