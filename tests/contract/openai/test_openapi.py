"""Requests generated from the service's own OpenAPI description: nothing undocumented comes back."""

import itertools
import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from tests.contract.openai.composed import BODIES
from ttmark.shared.schemas.generation.chat import ChatRequest
from ttmark.shared.schemas.generation.completions import CompletionRequest
from ttmark.shared.schemas.generation.readings import ReadingsRequest
from ttmark.shared.schemas.generation.responses_request import ResponsesRequest

load_all_checks()
POSITIVE_ACCEPTANCE = CHECKS.get_one("positive_data_acceptance")
AUTHORIZATION = {"Authorization": "Bearer author"}
MESSAGES = [{"role": "user", "content": "Hi"}]
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
STREAMS: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": "Once", "max_tokens": 6, "logprobs": 1},
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 6, "logprobs": True},
    "/v1/responses": {"input": MESSAGES, "max_output_tokens": 6},
}


@pytest.mark.long
@pytest.mark.parametrize(("examples", "cases"), [(10, 1), pytest.param(300, 50_000, marks=pytest.mark.slow)])
def test_whatever_the_description_allows_or_forbids_is_answered_as_documented(
    fake: Any, generate_cases: Any, examples: int, cases: int
) -> None:
    # Short runs under many seeds: what a case costs to generate grows with the length of its run.
    done, seeds = 0, itertools.count(1)
    while done < cases:
        done += generate_cases(fake.url, "author", examples=examples, seed=next(seeds))


@pytest.mark.parametrize(("examples", "runs"), [(10, 1), pytest.param(300, 30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/v1/responses"])
def test_valid_requests_to_a_real_model_are_answered_as_documented(fake, path, examples, runs):
    operation = schemathesis.openapi.from_url(fake.url + "/openapi.json")[path]["POST"]
    done = 0

    def check(case: Case) -> None:
        nonlocal done
        case.body |= {"model": "tiny", "watermark": None} | dict.fromkeys(LIMITS, 4)
        if done % 2:
            case.body["stream"] = True
        # A schema cannot say what fits this model: its vocabulary, its context, its chat template.
        case.call_and_validate(headers=AUTHORIZATION, excluded_checks=[POSITIVE_ACCEPTANCE])
        done += 1

    cases = given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    limits = settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    for number in range(1, runs + 1):
        seed(number)(limits(cases(check)))()


def test_the_description_is_valid_in_the_version_that_it_declares(fake, check_description):
    description = fake.http().get("/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    check_description(description)


def test_every_event_of_a_stream_is_as_described(fake: Any) -> None:
    description = fake.http().get("/openapi.json").json()
    for path, body in STREAMS.items():
        content = description["paths"][path]["post"]["responses"]["200"]["content"]
        schema = content["text/event-stream"]["schema"]["properties"]["data"]
        payload = next(kind for kind in schema.get("anyOf", [schema]) if "contentSchema" in kind)
        validator = Draft202012Validator(payload["contentSchema"] | {"components": description["components"]})
        with fake.http().stream("POST", path, json=body | {"model": "tiny", "stream": True}) as response:
            events = [line.removeprefix("data: ") for line in response.iter_lines() if line[:5] == "data:"]
        assert len(events) > 2
        for event in events:
            if event != "[DONE]":
                validator.validate(json.loads(event))


def test_every_route_documents_its_errors(fake: Any) -> None:
    paths = fake.http().get("/openapi.json").json()["paths"]
    for path, operations in paths.items():
        for operation in operations.values():
            documented = set(operation["responses"])
            if path.startswith("/v1/"):
                assert operation["security"] == [{"HTTPBearer": []}]
                assert {"200", "401", "403"} <= documented
            if "requestBody" in operation:
                assert {"400", "404", "408", "413", "415", "429", "500", "503"} <= documented


@pytest.mark.parametrize("kind", [CompletionRequest, ChatRequest, ResponsesRequest, ReadingsRequest])
def test_a_request_is_described_by_its_schema(fake: Any, kind: type[BaseModel]) -> None:
    """What it takes and refuses, `tests/unit/gen_service/api/test_description.py` tries on the schema."""
    described = fake.http().get("/openapi.json").json()["components"]["schemas"][kind.__name__]
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    for field in schema["properties"].values():
        field.pop("default", None)  # null, which says nothing
    assert described == schema


ANY_JSON, PLAIN = {"type": "json_object"}, {"type": "text"}
TOGETHER: list[tuple[str, dict[str, Any], bool]] = [
    ("completions", {"echo": True, "logprobs": 1}, False),
    ("completions", {"echo": False, "logprobs": 1}, True),
    ("completions", {"echo": True, "logprobs": None}, True),
    ("chat/completions", {"top_logprobs": 2}, False),
    ("chat/completions", {"top_logprobs": 2, "logprobs": False}, False),
    ("chat/completions", {"top_logprobs": 0}, True),
    ("chat/completions", {"top_logprobs": 1, "logprobs": True}, True),
    ("chat/completions", {"response_format": ANY_JSON, "ignore_eos": True}, False),
    ("chat/completions", {"response_format": ANY_JSON, "ignore_eos": False}, True),
    ("chat/completions", {"response_format": PLAIN, "ignore_eos": True}, True),
    ("responses", {"text": {"format": ANY_JSON}, "ignore_eos": True}, False),
    ("responses", {"text": {"format": ANY_JSON}, "ignore_eos": False}, True),
    ("responses", {"text": {"format": PLAIN}, "ignore_eos": True}, True),
    ("responses", {"text": {"format": None}, "ignore_eos": True}, True),
]


@pytest.mark.parametrize(("route", "more", "allowed"), TOGETHER)
def test_fields_that_cannot_stand_together_are_described_as_such(fake, route, more, allowed):
    description = fake.http().get("/openapi.json").json()
    content = description["paths"][f"/v1/{route}"]["post"]["requestBody"]["content"]
    schema = content["application/json"]["schema"] | {"components": description["components"]}
    assert Draft202012Validator(schema).is_valid({"model": "tiny"} | BODIES[route] | more) == allowed
    assert fake.post(route, **more).status_code == (200 if allowed else 400)
