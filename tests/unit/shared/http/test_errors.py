"""Every error, whoever raises it, has the service's style."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from ttmark.shared.http import service_errors as errors
from ttmark.shared.http.service_errors import ServiceError, openai_envelope, problem_document

Code = Callable[[httpx.Response], str]


def _tree(root: type[ServiceError]) -> Iterator[type[ServiceError]]:
    """Those of every route; `InvalidFields` and `TooManyParts` are others with words of their own."""
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__ and child not in (errors.InvalidFields, errors.TooManyParts):
            yield child
            yield from _tree(child)


@pytest.mark.parametrize("error_class", list(_tree(ServiceError)))
def test_each_error_class_states_status_code_type_and_title(error_class: type[ServiceError]) -> None:
    named = {"rule": "r", "reason": "scope"} if error_class is errors.PolicyDenied else {"param": "field"}
    error = error_class("What happened.", **named)
    envelope = openai_envelope(error)["error"]
    assert envelope == {
        "message": "What happened.",
        "type": error_class.type,
        "param": named.get("param"),
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


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "header"),
    [
        ("GET", "/v1/broken", 500, "internal_error", {}),
        ("GET", "/v1/nowhere", 404, "not_found", {}),
        ("GET", "/chat/completions", 404, "not_found", {}),
        ("PUT", "/v1/greet", 405, "method_not_allowed", {"allow": "POST"}),
        ("GET", "/v1/limited", 429, "rate_limit_exceeded", {"retry-after": "3"}),  # rounded up
        ("GET", "/v1/away", 503, "store_unavailable", {"retry-after": "1"}),
        ("GET", "/v1/keys/k", 404, "key_not_found", {}),
        ("GET", "/v1/quoting", 429, "rate_limit_exceeded", {}),
        ("GET", "/v1/broken-by-a-stranger", 500, "internal_error", {}),
    ],
)
async def test_whatever_goes_wrong_has_its_status_code_and_headers_and_shows_nothing_of_the_inside(
    client: httpx.AsyncClient,
    code_of: Code,
    method: str,
    path: str,
    status: int,
    code: str,
    header: dict[str, str],
) -> None:
    response = await client.request(method, path, json={"name": "a"} if method == "PUT" else None)
    assert (response.status_code, code_of(response)) == (status, code)
    assert header.items() <= dict(response.headers).items()
    assert ("begin with /v1" in response.text) is (path == "/chat/completions")
    assert ('"param":"key_id"' in response.text) is (code == "key_not_found")
    assert "secret" not in response.text
    assert "Traceback" not in response.text


async def test_a_field_that_breaks_the_schema_is_named_and_a_problem_lists_all(client, style, code_of):
    response = await client.post("/v1/greet", json={"name": "a", "numbers": [1, "x"], "surprise": 1})
    assert response.status_code == (400 if style == "openai" else 422)
    assert code_of(response) == ("invalid_request" if style == "openai" else "invalid_field")
    document = response.json()
    assert (document["error"] if style == "openai" else document)["param"] == "numbers[1]"
    if style == "problem":
        assert {item["field"] for item in document["errors"]} == {"numbers[1]", "surprise"}


async def test_a_missing_body_is_said_to_be_missing(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/greet")
    assert response.status_code in (400, 422)
    assert "A body is required." in response.text
