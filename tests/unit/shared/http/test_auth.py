"""Who gets in, and what those hear who do not."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

Code = Callable[[httpx.Response], str]


NONE = (401, "invalid_api_key", "www-authenticate", "Bearer")
WRONG = (401, "invalid_api_key", "www-authenticate", 'Bearer error="invalid_token"')
CHALLENGE = 'Bearer error="insufficient_scope", scope="generate"'


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        *((given, NONE) for given in (None, "", "Bearer", "Bearer ", "Basic Z2VuOnB3", "generator")),
        *((f"Bearer {token}", WRONG) for token in ("wrong", "expired", "generator2", "a" * 5000, "é")),
        ("bearer detector", (403, "insufficient_scope", "www-authenticate", CHALLENGE)),
        ("Bearer store-down", (503, "store_unavailable", "retry-after", "1")),
    ],
)
async def test_who_may_not_get_in_hears_why(client, code_of, authorization, expected):
    del client.headers["Authorization"]
    headers = {} if authorization is None else {"Authorization": authorization.encode()}
    response = await client.post("/v1/greet", json={"name": "a"}, headers=headers)
    status, code, header, value = expected
    assert (response.status_code, code_of(response)) == (status, code)
    assert response.headers[header] == value
    assert ("is empty" in response.text) == (authorization in ("Bearer", "Bearer "))


async def test_a_token_is_asked_for_before_the_body_is_read_and_on_every_path(client):
    response = await client.post("/v1/greet", content=b"{" * 9000, headers={"Authorization": "Bearer wrong"})
    assert response.status_code == 401
    assert (await client.get("/v1/nowhere", headers={"Authorization": ""})).status_code == 401


async def test_a_good_token_gives_the_principal_to_the_route(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/greet", json={"name": "a"})
    assert response.json() == {"hello": "a", "tenant": "acme", "numbers": []}


async def test_a_token_over_its_limit_is_a_429_before_the_body_is_read(client, settable, code_of):
    settable.wait = 1.2
    response = await client.post("/v1/greet", content=b"{")
    assert response.status_code == 429
    assert response.headers["retry-after"] == "2"
    assert code_of(response) == "rate_limit_exceeded"


async def test_only_good_tokens_count_against_limits(client: httpx.AsyncClient, settable: Any) -> None:
    await client.post("/v1/greet", json={"name": "a"})
    await client.post("/v1/greet", json={"name": "a"}, headers={"Authorization": "Bearer wrong"})
    await client.get("/readyz")
    assert settable.admitted == ["tok-1"]
