"""The service's description of itself, read by a validator that is not ours."""

from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator


@pytest.fixture
async def description(service) -> dict[str, Any]:
    document: dict[str, Any] = (await service.client.get("/openapi.json")).json()
    return document


def schemas_within(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from schemas_within(part)
    elif isinstance(value, list):
        for part in value:
            yield from schemas_within(part)


async def test_the_description_is_valid_for_the_version_that_it_declares(description) -> None:
    assert description["openapi"].startswith("3.1.")
    assert [error.message for error in OpenAPIV31SpecValidator(description).iter_errors()] == []


async def test_every_reference_of_the_description_leads_somewhere(description) -> None:
    names = {part["$ref"] for part in schemas_within(description) if isinstance(part.get("$ref"), str)}
    known = {f"#/components/schemas/{name}" for name in description["components"]["schemas"]}
    assert names <= known


async def test_requests_refuse_what_they_do_not_know_and_answers_may_grow(description) -> None:
    schemas = description["components"]["schemas"]
    for name in (
        "CombinedRequest",
        "DirectRequest",
        "AlignedRequest",
        "LocalizedRequest",
        "Document",
        "ExtractionRequest",
    ):
        assert schemas[name]["additionalProperties"] is False
    for name in ("CombinedResult", "DetectionResponse", "DetectionResult", "DetectionKeys", "Segment"):
        assert "additionalProperties" not in schemas[name]


async def test_the_description_says_what_a_phase_that_is_left_out_means(description) -> None:
    phase = description["components"]["schemas"]["DirectRequest"]["properties"]["phase"]
    assert "Left out: `any` for a document that is text, `0` for token ids." in phase["description"]
    assert "phase" not in description["components"]["schemas"]["DirectRequest"]["required"]
