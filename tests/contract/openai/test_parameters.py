"""Every parameter of the official client is supported, ignored or refused: none is forgotten."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from openai.resources.chat.completions import Completions as ChatCompletions
from openai.resources.completions import Completions
from openai.resources.responses import Responses
from pydantic import BaseModel

from tests.harness.imports import ROOT
from ttmark.shared.schemas.generation.chat import ChatRequest
from ttmark.shared.schemas.generation.completions import CompletionRequest
from ttmark.shared.schemas.generation.responses_request import ResponsesRequest

GUIDE = ROOT / "docs" / "generation.md"
# Of the client's call, not of the request's body.
OF_THE_CALL = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
REQUESTS: dict[str, tuple[Callable[..., Any], type[BaseModel], dict[str, Any]]] = {
    "/v1/completions": (Completions.create, CompletionRequest, {"prompt": "Once"}),
    "/v1/chat/completions": (
        ChatCompletions.create,
        ChatRequest,
        {"messages": [{"role": "user", "content": "Hi"}]},
    ),
    "/v1/responses": (Responses.create, ResponsesRequest, {"input": "Hi"}),
}
# What ignoring would change the answer.
WITH_EFFECT: dict[str, Any] = {
    "access_programs": {"cyber": "standard"},
    "background": True,
    "background_options": {"completion_window": "2h"},
    "context_management": [{"type": "compaction"}],
    "conversation": "conv_1",
    "include": ["message.output_text.logprobs"],
    "previous_response_id": "resp_1",
    "prompt": {"id": "pmpt_1"},
    "reasoning": {"effort": "high"},
    "top_logprobs": 2,
    "truncation": "auto",
    "audio": {"voice": "alloy", "format": "wav"},
    "best_of": 2,
    "function_call": {"name": "f"},
    "functions": [{"name": "f"}],
    "modalities": ["text", "audio"],
    "moderation": {"model": "omni-moderation-latest"},
    "reasoning_effort": "high",
    "store": True,
    "suffix": "the end",
    "verbosity": "low",
    "web_search_options": {},
}
WITHOUT_EFFECT: dict[str, Any] = {
    "image": {"context_compression": "enabled"},
    "max_tool_calls": 2,
    "stream_options": {"include_obfuscation": True},
    "metadata": {"topic": "tests"},
    "prediction": {"type": "content", "content": "Hello"},
    "prompt_cache_key": "a",
    "prompt_cache_options": {"mode": "implicit"},
    "prompt_cache_retention": "24h",
    "safety_identifier": "someone",
    "service_tier": "flex",
    "user": "someone",
}


def _classes(route: str) -> list[list[str]]:
    """The fields that the guide lists for a route: supported, ignored, refused."""
    (row,) = re.findall(rf"^\| `{re.escape(route)}` \|(.*)\|$", GUIDE.read_text(), re.M)
    return [re.findall(r"`([a-z_]+)`", cell) for cell in row.split("|")]


@pytest.mark.parametrize("route", REQUESTS)
def test_each_parameter_of_the_client_is_in_exactly_one_class(route: str) -> None:
    create, schema, _ = REQUESTS[route]
    supported, ignored, refused = _classes(route)
    assert set(ignored) <= schema.model_fields.keys()
    listed = [*supported, *ignored, *refused]
    assert len(listed) == len(set(listed))
    # Not the other way round: a client of before lacks a few.
    assert inspect.signature(create).parameters.keys() - OF_THE_CALL <= set(listed)
    assert set(supported) | set(refused) <= schema.model_fields.keys()


@pytest.mark.parametrize("route", REQUESTS)
def test_a_parameter_is_refused_or_without_effect_as_the_guide_says(fake: Any, route: str) -> None:
    _, _, body = REQUESTS[route]
    limit = "max_output_tokens" if route == "/v1/responses" else "max_tokens"
    request = {"model": "tiny", "seed": 1, limit: 4, **body}
    _, ignored, refused = _classes(route)
    plain = fake.http().post(route, json=request)
    assert plain.status_code == 200
    for name in ignored:
        answer = fake.http().post(route, json=request | {name: WITHOUT_EFFECT[name]})
        assert (name, _text(answer.json())) == (name, _text(plain.json()))
    for name in refused:
        answer = fake.http().post(route, json=request | {name: WITH_EFFECT[name]})
        param = answer.json().get("error", {}).get("param", "")
        assert (name, answer.status_code, param.split(".")[0]) == (name, 400, name)


def _text(answer: dict[str, Any]) -> Any:
    (part,) = answer.get("choices") or answer["output"]
    return part.get("text") or part.get("message") or part["content"]
