"""The HTTP client against a transport that answers from a list."""

import json

import httpx
import pytest
from pydantic import ValidationError

from ttmark.shared.client import (
    AsyncClient,
    Client,
    ClientError,
    ServiceRefused,
    ServiceUnreachable,
    UnexpectedAnswer,
)
from ttmark.shared.schemas.chat import ChatMessage, ChatRequest
from ttmark.shared.schemas.completions import CompletionRequest
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
)

ANSWER = {
    "results": [{"id": "0", "verdict": "not_detected", "tokens": 3, "hypotheses": 1}],
    "request_id": "r",
}
COMPLETION = {"id": "c", "created": 1, "model": "m", "choices": []}


def client(*answers: httpx.Response, retries: int = 3) -> tuple[Client, list[httpx.Request]]:
    queue, seen = list(answers), []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return queue.pop(0)

    transport = httpx.MockTransport(answer)
    return Client("http://detect", "secret", retries=retries, transport=transport), seen


def test_detection_sends_the_token_and_reads_the_typed_answer() -> None:
    with client(httpx.Response(200, json=ANSWER))[0] as service:
        response = service.detect(DirectRequest(inputs=[Document(text="abc")]))
    assert response.results[0].verdict == "not_detected"


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
        service.keys()
    assert error.value.status == response.status_code


async def both_fail(response: httpx.Response, call: str, *arguments: object) -> list[ClientError]:
    """What both clients raise when the service answers `response`."""
    transport = httpx.MockTransport(lambda _: httpx.Response(response.status_code, content=response.content))
    with (
        Client("http://detect", "t", retries=0, transport=transport) as service,
        pytest.raises(ClientError) as synchronous,
    ):
        getattr(service, call)(*arguments)
    async with AsyncClient("http://detect", "t", retries=0, transport=transport) as service:
        with pytest.raises(ClientError) as asynchronous:
            await getattr(service, call)(*arguments)
    return [synchronous.value, asynchronous.value]


async def test_fields_that_a_newer_service_adds_are_left_out() -> None:
    newer = json.loads(json.dumps(ANSWER))
    newer["cost"] = newer["results"][0]["basis"] = "new"
    newer["results"][0]["key"] = {"key_id": "k", "version": 1, "profile": "p", "colour": "new"}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=newer))
    request = DirectRequest(inputs=[Document(text="abc")])
    with Client("http://detect", "t", transport=transport) as service:
        answer = service.detect(request)
    async with AsyncClient("http://detect", "t", transport=transport) as service:
        assert await service.detect(request) == answer
    assert answer.results[0].key is not None
    assert answer.results[0].key.key_id == "k"


def test_requests_stay_strict() -> None:
    with pytest.raises(ValidationError):
        DirectRequest.model_validate({"inputs": [{"text": "a"}], "fprr": 0.1})


@pytest.mark.parametrize(
    ("response", "call", "reason"),
    [
        (httpx.Response(200, text="<html>hello</html>"), "keys", "Invalid JSON"),
        (httpx.Response(200, text=""), "models", "Invalid JSON"),
        (httpx.Response(200, json={"keys": []}), "keys", "scopes: Field required"),
        (httpx.Response(200, json={"data": [{"id": 1}]}), "models", "data.0.id"),
        (httpx.Response(200, json=[]), "models", "should be an object"),
    ],
)
async def test_an_answer_of_another_kind_is_an_error_that_says_what_is_wrong_with_it(
    response: httpx.Response, call: str, reason: str
) -> None:
    for error in await both_fail(response, call):
        assert isinstance(error, UnexpectedAnswer)
        assert error.status == 200
        assert str(error).startswith("http://detect/v1/")
        assert reason in str(error)
        assert "\n" not in str(error)


@pytest.mark.parametrize("content", [b"<html>", b"\xff", b"[1]", b"7"])
@pytest.mark.parametrize("call", ["complete", "chat"])
async def test_a_completion_that_is_none_is_an_error_too(content: bytes, call: str) -> None:
    for error in await both_fail(httpx.Response(200, content=content), call, {}):
        assert isinstance(error, UnexpectedAnswer)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"message": "no such model", "code": "model_not_found"}}, "model_not_found"),
        ({"title": "Bad", "detail": "no such model", "code": "model_not_found"}, "model_not_found"),
        ({"error": {"message": "no such model", "code": None}}, None),
    ],
)
async def test_a_refusal_has_the_services_status_and_code(body: dict[str, object], code: str | None) -> None:
    for error in await both_fail(httpx.Response(404, json=body), "complete", {}):
        assert isinstance(error, ServiceRefused)
        assert (str(error), error.status, error.code) == ("no such model", 404, code)


@pytest.mark.parametrize("body", [b"null", b"[]", b'{"error": "gone"}', b'{"error": null}', b"\xff"])
async def test_a_refusal_of_any_shape_is_a_refusal(body: bytes) -> None:
    for error in await both_fail(httpx.Response(400, content=body), "complete", {}):
        assert isinstance(error, ServiceRefused)
        assert (error.status, error.code) == (400, None)


def test_an_address_that_is_none_is_a_service_that_cannot_be_reached() -> None:
    for make in (Client, AsyncClient):
        with pytest.raises(ServiceUnreachable, match="is no address") as error:
            make("http://[::1", "t")
        assert error.value.status is None


def test_a_service_that_cannot_be_reached_is_named() -> None:
    with (
        Client("http://127.0.0.1:1", "t", retries=0) as service,
        pytest.raises(ClientError, match=r"127\.0\.0\.1:1"),
    ):
        service.keys()


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (CombinedRequest(inputs=[Document(text="a")]), "/v1/detect"),
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
    with Client("http://detect", "secret", transport=transport) as service:
        first = service.detect(request_)
    async with AsyncClient("http://detect", "secret", transport=transport) as service:
        assert await service.detect(request_) == first
    assert [request.url.path for request in seen] == [path, path]
    assert seen[0].content == seen[1].content
    assert type(request_).model_validate_json(seen[0].content) == request_


def chunk(content: str) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "a_new_field": 1}
    document = {"id": "c", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(document).encode() + b"\n\n"


async def streamed(status: int, body: bytes) -> list[list[str] | ClientError]:
    """What both clients read of a streamed chat that the service answers with `body`."""
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=body))
    seen: list[list[str] | ClientError] = []
    request = ChatRequest(model="m", messages=[ChatMessage(role="user", content="Who?")])
    with Client("http://gen", "t", retries=0, transport=transport) as service:
        try:
            seen.append([str(c.choices[0].delta.content) for c in service.stream_chat(request)])
        except Client.Error as error:
            seen.append(error)
    async with AsyncClient("http://gen", "t", retries=0, transport=transport) as service:
        try:
            seen.append([str(c.choices[0].delta.content) async for c in service.stream_chat(request)])
        except AsyncClient.Error as error:
            seen.append(error)
    return seen


async def test_a_streamed_chat_is_read_event_by_event() -> None:
    body = b": keep-alive\n\n" + chunk("one ") + chunk("two") + b"data: [DONE]\n\n"
    assert await streamed(200, body) == [["one ", "two"], ["one ", "two"]]


async def test_a_stream_that_the_service_refuses_or_ends_is_a_refusal() -> None:
    failed = b'{"error":{"message":"out of memory","type":"t","param":null,"code":"internal_error"}}'
    for status, body in ((500, failed), (200, chunk("one ") + b"data: " + failed + b"\n\n")):
        for error in await streamed(status, body):
            assert isinstance(error, ServiceRefused)
            assert (str(error), error.status, error.code) == ("out of memory", status, "internal_error")


async def test_a_stream_of_something_else_is_an_unexpected_answer() -> None:
    for error in await streamed(200, b"data: hello\n\n"):
        assert isinstance(error, UnexpectedAnswer)


def test_a_request_is_an_object_of_the_schema_or_its_fields() -> None:
    service, seen = client(httpx.Response(200, json=COMPLETION), httpx.Response(200, json=COMPLETION))
    with service:
        service.complete(CompletionRequest(model="m", prompt="a", max_tokens=3))
        service.complete({"model": "m", "prompt": "a", "max_tokens": 3})
    assert json.loads(seen[0].content) == json.loads(seen[1].content)


def test_a_text_alone_is_one_question() -> None:
    service, seen = client(httpx.Response(200, json=ANSWER))
    with service:
        service.detect("a text")
    assert seen[0].url.path == "/v1/detect"
    assert CombinedRequest.model_validate_json(seen[0].content).inputs[0].text == "a text"
