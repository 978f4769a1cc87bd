"""The HTTP client against a transport that answers from a list."""

import httpx
import pytest

from shared.client import AsyncTTMarkClient, ClientError, TTMarkClient
from shared.schemas.detection import (
    AlignedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
)

ANSWER = {
    "results": [{"id": "0", "verdict": "not_detected", "tokens": 3, "hypotheses": 1}],
    "request_id": "r",
}


def client(*answers: httpx.Response, retries: int = 3) -> tuple[TTMarkClient, list[httpx.Request]]:
    queue, seen = list(answers), []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return queue.pop(0)

    transport = httpx.MockTransport(answer)
    return TTMarkClient("http://detect", "secret", retries=retries, transport=transport), seen


def test_detection_sends_the_token_and_reads_the_typed_answer() -> None:
    with client(httpx.Response(200, json=ANSWER))[0] as service:
        response = service.detect_direct(DirectRequest(inputs=[Document(text="abc")]))
    assert response.results[0].verdict == "not_detected"


def test_a_busy_service_is_asked_again_after_the_time_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    busy = httpx.Response(429, headers={"Retry-After": "2"}, json={"error": {"message": "busy"}})
    service, seen = client(busy, httpx.Response(200, json={"choices": []}))
    with service:
        service.complete({"prompt": "a"})
    assert pauses == [2.0]
    assert len(seen) == 2
    assert seen[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (httpx.Response(404, json={"error": {"message": "unknown model"}}), "unknown model"),
        (httpx.Response(422, json={"title": "Bad", "detail": "fpr: too large"}), "fpr: too large"),
        (httpx.Response(500, text="<html>"), "http://detect/v1/keys answered 500"),
    ],
)
def test_a_refusal_is_an_error_in_the_services_own_words(response: httpx.Response, message: str) -> None:
    with client(response)[0] as service, pytest.raises(ClientError, match=message) as error:
        service.detection_keys()
    assert error.value.status == response.status_code


def test_a_service_that_stays_busy_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    busy = [httpx.Response(503, json={"error": {"message": "not ready"}}) for _ in range(3)]
    service, seen = client(*busy, retries=2)
    with service, pytest.raises(ClientError, match="not ready"):
        service.complete({})
    assert len(seen) == 3


def test_a_service_that_cannot_be_reached_is_named() -> None:
    with (
        TTMarkClient("http://127.0.0.1:1", "t", retries=0) as service,
        pytest.raises(ClientError, match=r"127\.0\.0\.1:1"),
    ):
        service.detection_keys()


@pytest.mark.parametrize("failure", [httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError])
async def test_a_connection_that_breaks_before_the_answer_is_made_again(
    monkeypatch: pytest.MonkeyPatch, failure: type[httpx.TransportError]
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr("asyncio.sleep", pause)

    def transport() -> httpx.MockTransport:
        failures = [failure("gone"), failure("gone")]

        def answer(request: httpx.Request) -> httpx.Response:
            if failures:
                raise failures.pop()
            return httpx.Response(200, json={"choices": []})

        return httpx.MockTransport(answer)

    with TTMarkClient("http://detect", "t", transport=transport()) as service:
        assert service.complete({}) == {"choices": []}
    async with AsyncTTMarkClient("http://detect", "t", transport=transport()) as service:
        assert await service.complete({}) == {"choices": []}
    assert [0.25 <= pauses[n] <= 0.5 and 0.5 <= pauses[n + 1] <= 1.0 for n in (0, 2)] == [True, True]


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (DirectRequest(inputs=[Document(text="a")], phase="any"), "/v1/detect/direct"),
        (AlignedRequest(inputs=[Document(token_ids=[1])], beta=2.0), "/v1/detect/aligned"),
        (LocalizedRequest(inputs=[Document(text="a")], method="waterseeker"), "/v1/detect/localized"),
    ],
)
async def test_the_requests_type_chooses_the_route_in_both_clients(
    request_: DetectionRequest, path: str
) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=ANSWER)

    transport = httpx.MockTransport(answer)
    with TTMarkClient("http://detect", "secret", transport=transport) as service:
        first = service.detect(request_)
    async with AsyncTTMarkClient("http://detect", "secret", transport=transport) as service:
        assert await service.detect(request_) == first
    assert [request.url.path for request in seen] == [path, path]
    assert seen[0].content == seen[1].content
    assert type(request_).model_validate_json(seen[0].content) == request_


async def test_the_asynchronous_client_waits_and_gives_up_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("asyncio.sleep", pause)
    busy = httpx.Response(429, headers={"Retry-After": "2"}, json={"title": "Busy", "detail": "busy"})
    transport = httpx.MockTransport(lambda _: busy)
    async with AsyncTTMarkClient("http://detect", "secret", retries=2, transport=transport) as service:
        with pytest.raises(ClientError, match="busy") as error:
            await service.detection_keys()
    assert error.value.status == 429
    assert pauses == [2.0, 2.0]
