"""The service's description of itself, read by a validator that is not ours."""

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from ttmark.shared.schemas.detection.jobs import JobRequest


@pytest.fixture
async def description(service) -> dict[str, Any]:
    document: dict[str, Any] = (await service.client.get("/openapi.json")).json()
    return document


async def test_the_description_is_valid_for_the_version_that_it_declares(description, check_description):
    assert description["openapi"].startswith("3.1.")
    check_description(description)


def schemas_of(description: dict[str, Any], told: Any) -> set[str]:
    """Names of the schemas with fields that a part of the description names, and those that these name."""
    kinds, names = description["components"]["schemas"], set[str]()
    while more := set(re.findall(r"#/components/schemas/(\w+)", str(told))) - names:
        names |= more
        told = [kinds[name] for name in more]
    return {name for name in names if "properties" in kinds[name]}


async def test_requests_refuse_what_they_do_not_know_and_answers_may_grow(description) -> None:
    operations = [operation for path in description["paths"].values() for operation in path.values()]
    sent = schemas_of(description, [operation.get("requestBody") for operation in operations])
    answered = schemas_of(description, [operation["responses"] for operation in operations])
    assert {"CombinedRequest", "Document"} <= sent
    assert {"CombinedResult", "DetectionKeys", "Segment"} <= answered
    told = description["components"]["schemas"]
    assert all(told[name]["additionalProperties"] is False for name in sent)
    assert not any("additionalProperties" in told[name] for name in answered)


async def test_routes_are_told_under_the_names_of_their_resources(description) -> None:
    of_resource = {"jobs": "jobs"} | dict.fromkeys(("healthz", "readyz", "metrics"), "operations")
    for path, operations in description["paths"].items():
        names = {tag for operation in operations.values() for tag in operation["tags"]}
        resource = next((part for part in path.split("/") if part in of_resource), "")
        assert names == {of_resource.get(resource, "detection")}, path


def job(**options: Any) -> dict[str, Any]:
    return {"inputs": [{"text": "a"}], **options}


REFUSED: list[Any] = [[], [{}], [{"text": "a", "token_ids": [1]}]]


def validator_of(description: dict[str, Any], schema: str) -> Draft202012Validator:
    kinds = description["components"]
    return Draft202012Validator({"$ref": f"#/components/schemas/{schema}", "components": kinds})


async def test_what_is_refused_whatever_the_deployment_is_described_as_such(service, description) -> None:
    for inputs in REFUSED:
        assert (await service.post("/v1/detect", {"inputs": inputs})).status_code == 422, inputs
        assert not validator_of(description, "CombinedRequest").is_valid({"inputs": inputs}), inputs


@pytest.mark.parametrize(
    "options",
    [
        {"phase": 0},
        {"phase": None},
        {"mode": "aligned", "phase": "any"},
        {"beta": 2.0},
        {"mode": "localized", "beta": 2.0},
        {"mode": "direct", "method": "scan"},
        {"inputs": []},
    ],
)
async def test_options_of_another_mode_are_described_as_refused(options: dict[str, Any]) -> None:
    validator = Draft202012Validator(JobRequest.model_json_schema())
    own_options = (("direct", {"phase": 0}), ("aligned", {"beta": 2.0}), ("localized", {"method": "scan"}))
    for mode, own in own_options:
        assert validator.is_valid(job(mode=mode, **own))
        assert validator.is_valid(job(mode=mode))
    assert validator.is_valid(job())
    body = job(**options)
    with pytest.raises(ValidationError):
        JobRequest.model_validate(body)
    assert not validator.is_valid(body)
