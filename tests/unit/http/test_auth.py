"""Who gets in, and what those hear who do not."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

Code = Callable[[httpx.Response], str]


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer ", "Basic Z2VuOnB3", "generator", "Token generator"]
)
async def test_a_request_without_a_bearer_token_is_a_401_with_a_challenge(
    client: httpx.AsyncClient, code_of: Code, authorization: str | None
) -> None:
    del client.headers["Authorization"]
    headers = {} if authorization is None else {"Authorization": authorization}
    response = await client.post("/v1/greet", json={"name": "a"}, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert code_of(response) == "invalid_api_key"
    assert ("is empty" in response.text) == (authorization in ("Bearer", "Bearer "))


@pytest.mark.parametrize("token", ["wrong", "expired", "generator2", "a" * 5000, "é"])
async def test_wrong_and_expired_tokens_get_the_same_401(
    client: httpx.AsyncClient, code_of: Code, token: str
) -> None:
    headers = {"Authorization": f"Bearer {token}".encode()}
    response = await client.post("/v1/greet", json={"name": "a"}, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert code_of(response) == "invalid_api_key"


async def test_authentication_comes_before_the_body(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/greet", content=b"{" * 9000, headers={"Authorization": "Bearer wrong"})
    assert response.status_code == 401


async def test_every_path_under_the_protected_prefix_asks_for_a_token(client: httpx.AsyncClient) -> None:
    response = await client.get("/v1/nowhere", headers={"Authorization": ""})
    assert response.status_code == 401


async def test_a_token_without_the_scope_is_a_403_that_names_the_scope(
    client: httpx.AsyncClient, code_of: Code
) -> None:
    response = await client.post(
        "/v1/greet", json={"name": "a"}, headers={"Authorization": "bearer detector"}
    )
    assert response.status_code == 403
    assert response.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="generate"'
    assert code_of(response) == "insufficient_scope"


async def test_a_store_that_is_down_is_a_503_and_opens_nothing(
    client: httpx.AsyncClient, code_of: Code
) -> None:
    response = await client.post(
        "/v1/greet", json={"name": "a"}, headers={"Authorization": "Bearer store-down"}
    )
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert code_of(response) == "store_unavailable"


async def test_a_good_token_gives_the_principal_to_the_route(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/greet", json={"name": "a"})
    assert response.json() == {"hello": "a", "tenant": "acme", "numbers": []}


async def test_a_token_over_its_limit_is_a_429_before_the_body_is_read(
    client: httpx.AsyncClient, settable: Any, code_of: Code
) -> None:
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
