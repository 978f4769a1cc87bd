"""Web pages call the services only from the origins that a setting names."""

import httpx
import pytest

PAGE = "https://app.example.org"
OTHER = "https://app.example.org.evil.example"
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-stainless-lang",
}
NONE: tuple[str, ...] = ()


@pytest.fixture(params=[NONE, (PAGE, "http://localhost:5173"), ("*",)], ids=["none", "some", "any"])
def cors_origins(request: pytest.FixtureRequest) -> tuple[str, ...]:
    origins: tuple[str, ...] = request.param
    return origins


async def _preflight(client: httpx.AsyncClient, origin: str) -> httpx.Response:
    del client.headers["Authorization"]
    return await client.options("/v1/greet", headers=PREFLIGHT | {"Origin": origin})


async def test_a_preflight_needs_no_token(client: httpx.AsyncClient, cors_origins: tuple[str, ...]) -> None:
    answer = await _preflight(client, PAGE)
    allowed = answer.headers.get("access-control-allow-origin")
    if not cors_origins:
        assert (answer.status_code, allowed) == (401, None)
        return
    assert (answer.status_code, allowed) == (200, "*" if cors_origins == ("*",) else PAGE)
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "x-stainless-lang" in answer.headers["access-control-allow-headers"]
    assert answer.headers["x-request-id"]


async def test_another_origin_is_told_nothing(client, cors_origins):
    allowed = {"*"} if cors_origins == ("*",) else {None}
    answer = await client.post("/v1/greet", json={"name": "Ada"}, headers={"Origin": OTHER})
    assert answer.status_code == 200  # browsers, not servers, keep answers from pages
    assert {answer.headers.get("access-control-allow-origin")} == allowed
    preflight = await _preflight(client, OTHER)
    assert preflight.status_code == (200 if allowed == {"*"} else 401 if not cors_origins else 400)
    assert {preflight.headers.get("access-control-allow-origin")} == allowed


@pytest.mark.parametrize(("path", "status"), [("/v1/limited", 429), ("/v1/broken", 500), ("/v1/none", 404)])
async def test_a_page_can_read_errors_their_id_and_when_to_try_again(client, cors_origins, path, status):
    answer = await client.get(path, headers={"Origin": PAGE})
    assert answer.status_code == status
    assert ("access-control-allow-origin" in answer.headers) == bool(cors_origins)
    exposed = answer.headers.get("access-control-expose-headers")
    assert exposed == ("X-Request-ID, Retry-After" if cors_origins else None)


async def test_browsers_are_not_asked_for_credentials(client: httpx.AsyncClient) -> None:
    answers = [await client.get("/v1/limited", headers={"Origin": PAGE}), await _preflight(client, PAGE)]
    assert all("access-control-allow-credentials" not in answer.headers for answer in answers)
