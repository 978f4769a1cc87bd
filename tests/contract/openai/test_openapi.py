"""Requests generated from the service's own OpenAPI description: nothing undocumented comes back."""

import itertools
import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from jsonschema import Draft202012Validator
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

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


@pytest.mark.parametrize(("examples", "cases"), [(10, 1), pytest.param(300, 50_000, marks=pytest.mark.slow)])
def test_whatever_the_description_allows_or_forbids_is_answered_as_documented(
    fake: Any, generate_cases: Any, record_result: Any, examples: int, cases: int
) -> None:
    done = 0
    # Short runs under many seeds: what a case costs to generate grows with the length of its run.
    for number in itertools.count(1):
        done += generate_cases(fake.url, "author", examples=examples, seed=number)
        record_result(
            "requests from the generation service's OpenAPI description",
            "0 responses 5xx, 0 schema violations",
            f"{done:,} cases over a fake engine, every check on: 0 and 0",
        )
        if done >= cases:
            return


@pytest.mark.parametrize(("examples", "runs"), [(10, 1), pytest.param(300, 30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/v1/responses"])
def test_valid_requests_to_a_real_model_are_answered_as_documented(fake, record_result, path, examples, runs):
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
    limits = settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    for number in range(1, runs + 1):
        seed(number)(limits(cases(check)))()
        record_result(
            f"valid requests to {path} of a model that is served",
            "0 responses 5xx, 0 schema violations",
            f"{done:,} requests: 0 and 0",
        )


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


def asked(path: str, **more: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    bodies: dict[str, dict[str, Any]] = {
        "/v1/completions": {"model": "tiny", "prompt": "Once", "max_tokens": 1},
        "/v1/chat/completions": {"model": "tiny", "messages": MESSAGES, "max_tokens": 1},
        "/v1/responses": {"model": "tiny", "input": "Hi", "max_output_tokens": 1},
        "/v1/watermark/verify": {"model": "tiny", "text": "A text " * 30},
        "/v1/readings": {"model": "tiny", "texts": ["A text"]},
    }
    return path, bodies[path], bodies[path] | more


ANY_JSON = {"type": "json_object"}


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        asked("/v1/completions", echo=True, logprobs=1),
        asked("/v1/completions", prompt=""),
        asked("/v1/completions", prompt=[]),
        asked("/v1/chat/completions", top_logprobs=2),
        asked("/v1/chat/completions", top_logprobs=2, logprobs=False),
        asked("/v1/chat/completions", response_format=ANY_JSON, ignore_eos=True),
        asked("/v1/responses", text={"format": ANY_JSON}, ignore_eos=True),
        asked("/v1/watermark/verify", prompt="a", messages=MESSAGES),
        asked("/v1/watermark/verify", token_ids=[1]),
        asked("/v1/watermark/verify", text=""),
        asked("/v1/watermark/verify", messages=[]),
        asked("/v1/readings", texts=[]),
        asked("/v1/readings", texts=[""]),
        asked("/v1/readings", texts=["a"] * 65),
    ],
)
def test_what_is_refused_whatever_the_model_is_described_as_such(fake, path, good, bad):
    description = fake.http().get("/openapi.json").json()
    schema = description["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = Draft202012Validator(schema | {"components": description["components"]})
    assert validator.is_valid(good)
    token = {"/v1/watermark/verify": "detector", "/v1/readings": "reader"}.get(path, "author")
    assert fake.http(token).post(path, json=bad).status_code == 400
    assert not validator.is_valid(bad)


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1/completions", {"echo": False, "logprobs": 1}),
        ("/v1/completions", {"echo": True, "logprobs": None}),
        ("/v1/chat/completions", {"top_logprobs": 0}),
        ("/v1/chat/completions", {"top_logprobs": 1, "logprobs": True}),
        ("/v1/chat/completions", {"response_format": {"type": "text"}, "ignore_eos": True}),
        ("/v1/chat/completions", {"response_format": ANY_JSON, "ignore_eos": False}),
        ("/v1/responses", {"text": {"format": {"type": "text"}}, "ignore_eos": True}),
        ("/v1/responses", {"text": {"format": ANY_JSON}, "ignore_eos": False}),
        ("/v1/responses", {"text": {"format": None}, "ignore_eos": True}),
    ],
)
def test_what_is_answered_is_described_as_allowed(fake: Any, path: str, more: dict[str, Any]) -> None:
    _, _, body = asked(path, **more)
    description = fake.http().get("/openapi.json").json()
    schema = description["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert Draft202012Validator(schema | {"components": description["components"]}).is_valid(body)
    assert fake.http().post(path, json=body).status_code == 200


def test_the_description_forbids_biases_of_what_is_no_token_id(fake: Any) -> None:
    schemas = fake.http().get("/openapi.json").json()["components"]["schemas"]
    for name in ("CompletionRequest", "ChatRequest", "ResponsesRequest"):
        allowed = [
            kind for kind in schemas[name]["properties"]["logit_bias"]["anyOf"] if "maxProperties" in kind
        ]
        assert [kind["additionalProperties"] for kind in allowed] == [False]
