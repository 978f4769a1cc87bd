"""Request ids, health, readiness and metrics."""

import httpx
import pytest

from ttmark.shared.http.telemetry import REFUSED_ROUTE, UNMATCHED_ROUTE


async def test_a_harmless_request_id_is_kept_by_errors_before_the_routes_too(client):
    for path, given in (("/healthz", {}), ("/v1/greet", {"Authorization": ""})):
        response = await client.get(path, headers={"X-Request-ID": "abc-1.2:3_4", **given})
        assert response.headers["x-request-id"] == "abc-1.2:3_4"


@pytest.mark.parametrize(
    "offered", ["", "a b", "a" * 129, 'a"b', "é", f"req-{'0' * 32}"]
)  # the last is as ours
async def test_any_other_request_id_is_replaced(client: httpx.AsyncClient, offered: str) -> None:
    response = await client.get("/healthz", headers={"X-Request-ID": offered.encode()})
    assert response.headers["x-request-id"].startswith("req-")
    assert response.headers["x-request-id"] != offered


async def test_health_routes_ask_for_no_token(client: httpx.AsyncClient) -> None:
    del client.headers["Authorization"]
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    assert (await client.get("/readyz")).json() == {
        "status": "ready",
        "checks": {"keys": True, "model": True},
    }
    assert (await client.get("/metrics")).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
@pytest.mark.parametrize("ready", [True, False])
async def test_head_answers_as_get_does(client, settable, path, ready):
    settable.ready = ready
    head, get = await client.head(path), await client.get(path)
    assert head.status_code == get.status_code
    assert head.headers["content-type"] == get.headers["content-type"]


async def test_a_failed_check_makes_the_service_not_ready(client, registry, settable):
    assert registry.get_sample_value("ttmark_ready", {"check": "keys"}) == 1
    settable.ready = False
    response = await client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {"status": "not_ready", "checks": {"keys": False, "model": True}}
    assert registry.get_sample_value("ttmark_ready", {"check": "keys"}) == 0
    assert (await client.get("/healthz")).status_code == 200


async def test_requests_are_counted_by_route_template_and_never_by_path(client, registry):
    for key in ("one", "two"):
        await client.get(f"/v1/keys/{key}")
        await client.get(f"/v1/{key}")
        await client.get(f"/{key}")
        await client.post("/v1/greet", content=b"{", headers={"Content-Type": "application/json"})

    def count(route: str) -> float | None:
        labels = {"route": route, "method": "GET", "status": "404"}
        return registry.get_sample_value("ttmark_http_requests_total", labels)

    assert count("/v1/keys/{key_id}") == 2
    assert count(UNMATCHED_ROUTE) == 2
    assert count(REFUSED_ROUTE) == 2
    text = (await client.get("/metrics")).text
    assert "/v1/one" not in text
    assert 'ttmark_build_info{python="3.' in text
    assert "process_start_time_seconds" in text


async def test_an_invented_method_is_counted_as_other_and_a_broken_request_is_not_in_flight(client, registry):
    await client.request("BREW", "/v1/greet")
    labels = {"route": "/v1/greet", "method": "other", "status": "405"}
    assert registry.get_sample_value("ttmark_http_requests_total", labels) == 1
    await client.get("/v1/broken")
    assert registry.get_sample_value("ttmark_http_requests_in_flight") == 0


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/v1/greet", {}, 200),
        ("POST", "/v1/greet", {"Authorization": ""}, 401),
        ("PUT", "/v1/greet", {}, 405),
        ("GET", "/v1/keys/one", {}, 404),
        ("GET", "/v1/nowhere", {}, 404),
        ("GET", "/healthz", {"Authorization": ""}, 200),
    ],
)
async def test_a_slash_at_the_end_is_answered_limited_and_counted_as_none(
    client, registry, settable, method, path, headers, status
) -> None:
    body = {"name": "a"} if method == "POST" else None
    answers = [await client.request(method, path + end, json=body, headers=headers) for end in ("", "/")]
    assert [each.status_code for each in answers] == [status, status]
    assert not answers[0].is_success or answers[0].content == answers[1].content
    assert len(settable.admitted) in (0, 2)
    samples = (sample for family in registry.collect() for sample in family.samples)
    counted = [sample.value for sample in samples if sample.name == "ttmark_http_requests_total"]
    assert counted == [2]
