"""Every error, whoever raises it, has the service's style."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from ttmark.shared.http import service_errors as errors
from ttmark.shared.http.service_errors import ServiceError, openai_envelope, problem_document

Code = Callable[[httpx.Response], str]


def _tree(root: type[ServiceError]) -> Iterator[type[ServiceError]]:
    """Those of every route; `InvalidFields` is `Unprocessable` with its fields."""
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__ and child is not errors.InvalidFields:
            yield child
            yield from _tree(child)


@pytest.mark.parametrize("error_class", list(_tree(ServiceError)))
def test_each_error_class_states_status_code_type_and_title(error_class: type[ServiceError]) -> None:
    named = {"rule": "r", "reason": "scope"} if error_class is errors.PolicyDenied else {}
    error = error_class("What happened.", param="field", **named)
    envelope = openai_envelope(error)["error"]
    assert envelope == {
        "message": "What happened.",
        "type": error_class.type,
        "param": "field",
        "code": error_class.code,
    }
    problem = problem_document(error, "urn:ttmark:request:1")
    assert problem["status"] == error_class.status
    assert problem["type"] == f"urn:ttmark:error:{error_class.code}"
    assert problem["title"] == error_class.title
    assert 400 <= error_class.status <= 503


def test_no_two_error_classes_share_a_code() -> None:
    codes = [error_class.code for error_class in _tree(ServiceError)]
    assert len(codes) == len(set(codes))


async def test_an_unforeseen_exception_is_a_generic_500_without_its_message_or_trace(
    client: httpx.AsyncClient, code_of: Code
) -> None:
    response = await client.get("/v1/broken")
    assert response.status_code == 500
    assert code_of(response) == "internal_error"
    assert "secret" not in response.text
    assert "Traceback" not in response.text


async def test_an_unknown_route_is_a_404(client: httpx.AsyncClient, code_of: Code) -> None:
    for path, hint in (("/v1/nowhere", False), ("/chat/completions", True)):
        response = await client.get(path)
        assert response.status_code == 404
        assert code_of(response) == "not_found"
        assert ("begin with /v1" in response.text) is hint


async def test_a_method_that_a_route_lacks_is_a_405_that_names_the_others(
    client: httpx.AsyncClient, code_of: Code
) -> None:
    response = await client.put("/v1/greet", json={"name": "a"})
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert code_of(response) == "method_not_allowed"


async def test_retry_after_is_rounded_up_to_whole_seconds(client: httpx.AsyncClient, code_of: Code) -> None:
    response = await client.get("/v1/limited")
    assert response.status_code == 429
    assert response.headers["retry-after"] == "3"
    assert code_of(response) == "rate_limit_exceeded"


async def test_an_error_of_the_domain_keeps_its_code_and_field(
    client: httpx.AsyncClient, code_of: Code
) -> None:
    response = await client.get("/v1/keys/k")
    assert response.status_code == 404
    assert code_of(response) == "key_not_found"
    assert '"param":"key_id"' in response.text


async def test_a_field_that_breaks_the_schema_is_named(
    client: httpx.AsyncClient, style: str, code_of: Code
) -> None:
    response = await client.post("/v1/greet", json={"name": "a", "numbers": [1, "x"]})
    assert response.status_code == (400 if style == "openai" else 422)
    assert code_of(response) == ("invalid_request" if style == "openai" else "invalid_field")
    document = response.json()
    assert (document["error"] if style == "openai" else document)["param"] == "numbers[1]"


async def test_every_field_at_fault_is_listed_in_a_problem_document(
    client: httpx.AsyncClient, style: str
) -> None:
    response = await client.post("/v1/greet", json={"name": "", "surprise": 1})
    if style == "problem":
        assert {item["field"] for item in response.json()["errors"]} == {"name", "surprise"}
    else:
        assert response.json()["error"]["param"] == "name"


async def test_a_missing_body_is_said_to_be_missing(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/greet")
    assert response.status_code in (400, 422)
    assert "A JSON body is required." in response.text
