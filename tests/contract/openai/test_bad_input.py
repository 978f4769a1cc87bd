"""Bad input gets the documented error with the field named, and never a 500."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.openai.composed import LIMITS
from tests.harness.imports import ROOT
from ttmark.shared.http.service_errors import ServiceError

# Status, code, and the field at fault.
Fault = tuple[int, str, str | None]
Case = tuple[dict[str, Any], Fault]
TOO_LONG, NO_KEY = "context_length_exceeded", (404, "key_not_found", "watermark.key_id")


def bad(param: str) -> Fault:
    return 400, "invalid_request", param


def bad_values(fields: dict[str, list[Any]]) -> list[Case]:
    """Values that a field may not have."""
    return [({name: value}, bad(name)) for name, values in fields.items() for value in values]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def function(**more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f"} | more}


NOT_SERVED = {"type": "web_search"}
NOBODY = {"type": "function", "name": "nobody"}
BAD_COMPLETIONS: list[Case] = [
    *bad_values(
        {
            "prompt": [
                "",
                ["a", ""],
                [[]],
                [-1],
                [999_999],
                [[1], [2**40]],
                ["a", 1],
                {"text": "a"},
                ["a"] * 9,
            ],
            "max_tokens": [0, "4", 4.5],
            "model": [""],
            "n": [0, 17, True],
            "temperature": [-0.1, 2.1, "hot"],
            "top_p": [0, 1.5],
            "top_k": [-2],
            "min_p": [2],
            "presence_penalty": [3],
            "frequency_penalty": [-3],
            "repetition_penalty": [0.9, 2.1],
            "stop": ["", ["a", ""], ["a"] * 5],
            "seed": [1.5],
            "min_tokens": [-1, 5],
            "stop_token_ids": [[999_999]],
            "bad_words": ["a"],
            "logprobs": [21, True],
            "logit_bias": [{"1": 101}, {"a": 1}, {"999999": 1}, {str(i): 1 for i in range(1025)}],
            "stream": ["yes"],
            "stream_options": [[]],
            "watermark": [True],
        }
    ),
    ({"prompt": ["a"] * 5, "n": 2}, bad("prompt")),
    ({"max_tokens": 10**30}, (400, TOO_LONG, "max_tokens")),
    ({"max_tokens": 256}, (400, TOO_LONG, "max_tokens")),
    ({"prompt": "x " * 256}, (400, TOO_LONG, "max_tokens")),
    ({"model": "gpt-9"}, (404, "model_not_found", "model")),
    ({"model": "a/../b\x00"}, (404, "model_not_found", "model")),
    ({"logprobs": 1, "echo": True}, bad("logprobs")),
    ({"stop_token_ids": ["a"]}, bad("stop_token_ids[0]")),
    ({"bad_words": [" "]}, bad("bad_words[0]")),
    ({"bad_words": ["x" * 201]}, bad("bad_words[0]")),
    ({"stream_options": {"include_usage": 1}}, bad("stream_options.include_usage")),
    ({"watermark": {"key_id": 5}}, bad("watermark.key_id")),
    ({"watermark": {"key_id": "nobody's"}}, NO_KEY),
    ({"watermark": {"enabled": False}}, (403, "insufficient_scope", None)),
    ({"watermark": {"x" * 5_000: 1}}, bad(f"watermark.{'x' * 64}")),
    ({"watermark": {str(n): 1 for n in range(5_000)}}, bad("watermark.0")),
]
BAD_CHATS: list[Case] = [
    *bad_values(
        {
            "messages": [
                [],
                "Hi",
                [user("a"), {"role": "system", "content": "b"}],
                [user("a"), {"role": "tool", "tool_call_id": "b", "content": "c"}],
            ],
            "max_tokens": [0],
            "max_completion_tokens": [0],
            "response_format": [{"type": "gramar"}],
            "tool_choice": ["required", "any", function()],
            "tools": [[function(), function()]],
            "store": [0],
            "top_logprobs": [3],
            "logprobs": [1],
        }
    ),
    ({"messages": [{}]}, bad("messages[0].role")),
    ({"messages": [{"role": "tool", "content": "1"}]}, bad("messages[0].tool_call_id")),
    ({"messages": [user(None)]}, bad("messages[0].content")),
    ({"messages": [user([{"type": "image_url"}])]}, bad("messages[0].content")),
    ({"messages": [user("x " * 300)]}, (400, TOO_LONG, "messages")),
    ({"max_tokens": 250}, (400, TOO_LONG, "max_tokens")),
    ({"model": "untold"}, (400, "unsupported_feature", "messages")),
    ({"messages": [{"role": "assistant"}]}, bad("messages[0].content")),
    ({"messages": [{"role": "robot", "content": "x"}]}, bad("messages[0].role")),
    ({"tools": [{"type": "function"}]}, bad("tools[0].function")),
    ({"tools": [NOT_SERVED]}, bad("tools[0].type")),
    ({"tools": [function(name="a b")]}, bad("tools[0].function.name")),
    ({"tools": [function(parameters={"type": "string"})]}, bad("tools[0].function.parameters")),
    ({"tools": [function()], "tool_choice": function(name="nobody")}, bad("tool_choice")),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        bad("response_format.json_schema.name"),
    ),
    ({"logprobs": True, "top_logprobs": 21}, bad("top_logprobs")),
]
BAD_RESPONSES: list[Case] = [
    *bad_values(
        {
            "input": [
                None,
                "",
                [],
                [{"type": "function_call_output", "output": "b"}],
                [{"type": "function_call_output", "call_id": "a", "output": "b"}],
                [{"type": "function_call", "call_id": "a", "name": "b"}],
                [{"type": "item_reference", "id": "msg_1"}],
                [user([{"type": "input_image", "image_url": "a"}])],
            ],
            "instructions": [["a"]],
            "tool_choice": ["required", NOT_SERVED, NOBODY],
            "tools": [[{"type": "function", "name": "a"}] * 2],
            "max_output_tokens": [0],
            "temperature": [3],
            "metadata": [{"a": 1}, {str(i): "a" for i in range(17)}],
        }
    ),
    ({"input": [{"role": "tool", "content": "a"}]}, bad("input[0].role")),
    ({"instructions": "a", "input": [{"role": "system", "content": "b"}]}, bad("input")),
    ({"input": "x " * 300}, (400, TOO_LONG, "input")),
    ({"max_output_tokens": 250}, (400, TOO_LONG, "max_output_tokens")),
    ({"model": "untold"}, (400, "unsupported_feature", "input")),
    ({"model": "gpt-9"}, (404, "model_not_found", "model")),
    ({"text": {"format": {"type": "grammar"}}}, bad("text.format")),
    ({"text": {"format": {"type": "json_schema", "name": "a"}}}, bad("text.format.json_schema.schema")),
    ({"text": {"verbosity": "low"}}, bad("text.verbosity")),
    ({"reasoning": {"effort": "high"}}, bad("reasoning.effort")),
    ({"tools": [NOT_SERVED]}, bad("tools[0].type")),
    ({"tools": [{"type": "function", "name": "a"}], "tool_choice": NOBODY}, bad("tool_choice")),
    ({"watermark": {"key_id": "nobody's"}}, NO_KEY),
    ({"watermark": {"enabled": False}}, (403, "insufficient_scope", None)),
]
BAD = [
    *(("completions", *case) for case in BAD_COMPLETIONS),
    *(("chat/completions", *case) for case in BAD_CHATS),
    *(("responses", *case) for case in BAD_RESPONSES),
]


def _check(response: Any, expected: Fault) -> None:
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == expected
    assert error["message"]
    assert error["type"]


def _name(case: Any) -> str:
    return str(case)[:50] if isinstance(case, dict) else ""


@pytest.mark.parametrize(("route", "change", "expected"), BAD, ids=_name)
def test_a_bad_request_is_refused_by_field(service, route, change, expected):
    _check(service.post(route, tokens=None if LIMITS[route] in change else 4, **change), expected)


def test_words_that_could_leave_no_token_are_refused(fake: Any) -> None:
    words = [chr(65 + number % 60) * (1 + number // 60) for number in range(128)]  # each is short enough
    answer = fake.post("completions", tokens=4, bad_words=words, stop_token_ids=[*range(128)], min_tokens=4)
    _check(answer, bad("bad_words"))


def test_an_unknown_field_of_no_characters_is_a_400(service: Any) -> None:
    body = b'{"model": "tiny", "prompt": "a", "watermark": {"\\ud800": 1}}'
    headers = {"Content-Type": "application/json"}
    assert service.http().post("/v1/completions", content=body, headers=headers).status_code == 400


@pytest.mark.parametrize(
    ("route", "change", "said"),
    [
        (
            "completions",
            {"max_tokens": 255},
            "The prompt has 4 tokens and max_tokens is 255, together 3 tokens over.",
        ),
        ("completions", {"max_tokens": 253}, "together 1 token over."),
        ("completions", {"prompt": [1] * 260}, "The prompt has 260 tokens, 4 tokens over."),
        ("chat/completions", {"max_tokens": 256}, "tokens over."),
        (
            "chat/completions",
            {"messages": [user("x" * 256)], "max_tokens": None},
            "tokens over what leaves room for an answer.",
        ),
        ("responses", {"max_output_tokens": 256}, "tokens over."),
    ],
)
def test_a_full_context_is_said_before_a_stream_begins_with_the_tokens_over(
    real: Any, route: str, change: dict[str, Any], said: str
) -> None:
    answer = real.post(route, stream=True, **change)
    assert answer.headers["Content-Type"] == "application/json"
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, TOO_LONG)
    assert error["message"].startswith("This model's maximum context length is 256 tokens. ")
    assert error["message"].endswith(said)


def test_a_body_over_the_limit_is_a_413(fake: Any) -> None:
    response = fake.post("completions", user="x" * 100_000)
    _check(response, (413, "request_too_large", None))


def test_fields_without_effect_on_the_text_are_taken(service: Any) -> None:
    extra = {"metadata": {"a": [1]}, "service_tier": "auto", "store": False}
    assert service.post("completions", **extra).status_code == 200


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
    response = service.post("completions", **dict.fromkeys(fields))
    assert response.status_code == 200


@pytest.mark.parametrize("text", ["\x00", "\u202e\u200b\ufeff", "e\u0301" * 3, "👩‍👩‍👧", "\ufffd"])
def test_unusual_characters_are_text_like_any_other(service: Any, text: str) -> None:
    response = service.post("completions", prompt=text, echo=True)
    assert response.json()["choices"][0]["text"].startswith(text)


def test_the_guide_lists_every_error_code_that_a_route_can_answer_with() -> None:
    guide = ROOT.joinpath("docs", "generation.md").read_text()
    codes = set(re.findall(r"`([a-z_]+)`", guide[guide.index("## Errors") :]))
    # Not of these routes: paths and methods that do not exist, problem documents, forms, idempotency keys.
    others = {
        "conflict", "request_in_progress", "already_gone", "idempotency_key_reused", "not_found",
        "method_not_allowed", "invalid_field", "unavailable", "internal_error", "too_much_work",
        "malformed_form",
    }  # fmt: skip
    assert {error.code for error in _tree(ServiceError)} - others <= codes


def _tree(root: type[ServiceError]) -> Iterator[type[ServiceError]]:
    for child in root.__subclasses__():
        yield child
        yield from _tree(child)


@pytest.mark.parametrize(
    ("route", "prompt", "param"),
    [
        ("completions", {"prompt": "a" * 90_000}, "prompt"),
        ("completions", {"prompt": [[7], [7] * 20_000]}, "prompt"),
        ("chat/completions", {"messages": [user("a" * 90_000)]}, "messages"),
        ("responses", {"input": "a" * 90_000}, "input"),
    ],
)
def test_what_cannot_fit_the_context_is_refused_before_it_is_tokenised(
    fake: Any, monkeypatch: pytest.MonkeyPatch, route: str, prompt: dict[str, Any], param: str
) -> None:
    def tokenised(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was tokenised")

    monkeypatch.setattr("ttmark.gen_service.api.plan.prompts._from_text", tokenised)
    monkeypatch.setattr("ttmark.shared.tokenization.TextTokenizer.decode", tokenised)
    monkeypatch.setattr(
        "ttmark.gen_service.api.conversation.control_tokens.ConversationEncoder.encode", tokenised
    )
    _check(fake.post(route, **prompt | {LIMITS[route]: None}), (400, TOO_LONG, param))
