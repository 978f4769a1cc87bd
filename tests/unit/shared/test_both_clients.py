"""What both clients promise alike: the same calls, and when a call is sent again, over listed answers."""

import asyncio
import inspect
import json
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import ExitStack
from itertools import islice
from types import SimpleNamespace
from typing import Any, get_args, get_overloads, get_type_hints

import httpx
import pytest

from tests.unit.shared.either_client import EitherClient
from ttmark import schemas
from ttmark.shared.client import (
    AnswerLost,
    AsyncClient,
    Client,
    ClientError,
    ServiceRefused,
    ServiceUnreachable,
    UnexpectedAnswer,
    calls,
)
from ttmark.shared.schemas.detection.detect import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
)
from ttmark.shared.schemas.generation.chat import ChatChunk

BROKEN = [httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError]
COMPLETION = {"id": "c", "created": 1, "model": "m", "choices": []}
RESULT = {"id": "0", "verdict": "not_detected", "tokens": 3, "hypotheses": 1}
DETECTION = {"results": [RESULT], "request_id": "r"}
JOB = {"id": "a" * 32, "status": "queued", "mode": "direct", "documents": 3, "answered": 0, "failed": 0}
JOB |= {"created_at": 1.0, "expires_at": 2.0}
WORDS = {"headline": "h", "explanation": "e", "caution": "c"}
REQUEST = DirectRequest(inputs=[Document(text="abc")])
# Calls that are no more when they arrive twice, and calls that are; each with its answer.
REPEATABLE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "job": (lambda client: client.job("a"), JOB),
    "delete_job": (lambda client: client.delete_job("a"), None),
    "submit_job": (lambda client: client.submit_job({"inputs": [{"text": "a"}]}), JOB),
}
ONCE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "detect": (lambda client: client.detect(REQUEST), DETECTION),
    "detect_public": (lambda client: client.detect_public("a"), {"verdict": "found", "message": WORDS}),
    "complete": (lambda client: client.complete({"prompt": "a"}), COMPLETION),
    "stream_chat": (lambda client: client.stream_chat({"messages": []}), COMPLETION),
}
ALL = REPEATABLE | ONCE


def schemas_in(hint: Any) -> set[type]:
    if isinstance(hint, type) and hint.__module__.startswith("ttmark.shared.schemas."):
        return {hint}
    return {schema for part in get_args(hint) for schema in schemas_in(part)}


def test_what_the_client_takes_and_gives_is_in_ttmark_schemas() -> None:
    methods = [method for name, method in inspect.getmembers(calls, inspect.isfunction) if name[0] != "_"]
    methods += [AsyncClient.stream_chat, AsyncClient.iter_job_results, AsyncClient.wait_for_job]
    each = [form for method in methods for form in get_overloads(method) or [method]]
    used = {schema for form in each for hint in get_type_hints(form).values() for schema in schemas_in(hint)}
    assert len(used) > 10
    assert {schema.__name__ for schema in used if vars(schemas).get(schema.__name__) is not schema} == set()


class Service:
    """Answers from a list, the last one for ever, and remembers what it was asked."""

    def __init__(self, *answers: httpx.Response | type[httpx.TransportError]) -> None:
        self.answers = list(answers)
        self.seen: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, type):
            raise answer("gone")
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


def good(answer: Any) -> httpx.Response:
    return httpx.Response(204) if answer is None else httpx.Response(200, json=answer)


def refused(status: int, retry_after: str | None = None, code: str | None = None) -> httpx.Response:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return httpx.Response(status, headers=headers, json={"title": "t", "detail": "not now", "code": code})


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the clients would have slept. Servers that other tests left running have threads here too."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    blocking = SimpleNamespace(**{**vars(time), "sleep": slept.append})
    monkeypatch.setattr("ttmark.shared.client.client.time", blocking)
    monkeypatch.setattr(
        "ttmark.shared.client.client.asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep})
    )
    return slept


Ask = Callable[..., EitherClient]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    """Makes the client of one kind for a service."""
    with ExitStack() as opened:

        def made(service: Service, token: str | None = "secret", **options: Any) -> EitherClient:
            options["transport"] = httpx.MockTransport(service)
            return opened.enter_context(EitherClient(request.param, "http://service", token, **options))

        yield made


def public(kind: type) -> dict[str, list[tuple[str, Any, Any]]]:
    return {
        name: [(one.name, one.kind, one.default) for one in inspect.signature(method).parameters.values()]
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") or name == "__init__"
    }


def test_both_clients_have_the_same_calls_arguments_and_errors() -> None:
    assert public(Client) == public(AsyncClient)
    answers = [inspect.signature(kind.stream_chat).return_annotation for kind in (Client, AsyncClient)]
    assert answers == [Generator[ChatChunk, None, None], AsyncGenerator[ChatChunk, None]]
    for error in ("Error", "Refused", "Unreachable", "AnswerLost", "UnexpectedAnswer"):
        assert getattr(Client, error) is getattr(AsyncClient, error)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("failure", "status"), [*((one, None) for one in BROKEN), (None, 502), (None, 504)])
def test_what_may_have_arrived_is_sent_again_only_where_it_is_done_once(ask, pauses, name, failure, status):
    call, answer = ALL[name]
    lost = failure or httpx.Response(status, text="<html>")
    service = Service(lost, lost, good(answer))
    client = ask(service)
    if name in REPEATABLE:
        call(client)
        assert len(service.seen) == 3
        assert 0.25 <= pauses[0] <= 0.5 <= pauses[1] <= 1.0
        return
    said = f"answered {status}" if status else "does not answer: gone"
    with pytest.raises(AnswerLost, match=f"{said}. The request may have arrived, so it was not") as error:
        call(client)
    assert (len(service.seen), error.value.idempotency_key, error.value.status) == (1, None, status)
    assert "\n" not in str(error.value)
    assert status or isinstance(error.value.__cause__, failure)


@pytest.mark.parametrize("name", ALL)
def test_what_found_no_service_is_sent_again(ask: Ask, pauses: list[float], name: str) -> None:
    call, answer = ALL[name]
    service = Service(httpx.ConnectError, httpx.ConnectError, good(answer))
    call(ask(service))
    assert len(service.seen) == 3


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("name", ALL)
def test_a_busy_service_is_asked_again_after_the_time_that_it_names(ask, pauses, name, status):
    call, answer = ALL[name]
    service, heard = Service(refused(status, "40"), refused(status, "2"), good(answer)), list[Any]()
    call(ask(service, on_wait=lambda seconds, error: heard.append((seconds, str(error)))))
    assert pauses == [40.0, 2.0]
    assert heard == [(40.0, "not now"), (2.0, "not now")]
    assert service.seen[0].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(("patience", "waits"), [(0.0, 0), (59.9, 0), (60.0, 1), (179.0, 2)])
@pytest.mark.parametrize("name", ["submit_job", "detect", "job"])
def test_a_call_never_waits_longer_than_its_patience_and_never_shorter_than_told(
    ask: Ask, pauses: list[float], name: str, patience: float, waits: int
) -> None:
    service = Service(refused(429, "60"))
    with pytest.raises(ServiceRefused, match="not now") as error:
        ALL[name][0](ask(service, patience=patience))
    assert pauses == [60.0] * waits
    assert (error.value.status, error.value.retry_after) == (429, 60.0)


@pytest.mark.parametrize("retry_after", [None, "Fri, 31 Dec 1999 23:59:59 GMT", "-1", "nan", "", "9" * 400])
def test_without_a_time_only_what_is_done_once_is_sent_again(ask, pauses, retry_after):
    for call, answer in REPEATABLE.values():
        service = Service(refused(503, retry_after), good(answer))
        call(ask(service))
        assert len(service.seen) == 2
    for call, _ in ONCE.values():
        service = Service(refused(503, retry_after))
        with pytest.raises(ServiceRefused) as error:
            call(ask(service))
        assert (len(service.seen), error.value.retry_after) == (1, None)


def test_all_attempts_of_a_call_have_one_key_and_each_call_its_own(ask, pauses):
    call, answer = ALL["submit_job"]
    in_progress = refused(409, "1", "request_in_progress")
    service = Service(httpx.ReadError, in_progress, refused(429, "1"), good(answer))
    client = ask(service)
    call(client)
    call(client)
    keys = [request.headers["Idempotency-Key"] for request in service.seen]
    assert len(keys) == 5
    assert len(set(keys[:4])) == 1
    assert keys[4] not in keys[:4]
    assert len({request.content for request in service.seen}) == 1


def test_a_caller_s_own_key_is_sent_as_it_is_and_comes_back_in_the_error(ask, pauses):
    for key in ("order-7", "", "ü", "a b", "k" * 300):
        service = Service(httpx.ReadError)
        with pytest.raises(AnswerLost, match="send it again with the idempotency key") as error:
            ask(service, retries=1).submit_job({"inputs": [{"text": "a"}]}, idempotency_key=key)
        assert error.value.idempotency_key == key
        sent = [dict(request.headers.raw)[b"Idempotency-Key"] for request in service.seen]
        assert sent == [key.encode()] * 2


def test_the_error_remembers_that_an_earlier_attempt_may_have_arrived(ask: Ask, pauses: list[float]) -> None:
    service = Service(httpx.ReadError, httpx.ConnectError)
    with pytest.raises(AnswerLost) as error:
        ask(service).submit_job({"inputs": [{"text": "a"}]})
    assert error.value.idempotency_key == service.seen[0].headers["Idempotency-Key"]
    assert len(service.seen) == 4


def test_who_never_reached_the_service_is_not_told_that_something_arrived(ask, pauses):
    for call, _ in ALL.values():
        for failure in (httpx.ConnectError, httpx.ConnectTimeout):
            with pytest.raises(ServiceUnreachable, match="http://service does not answer: gone") as error:
                call(ask(Service(failure)))
            assert type(error.value) is ServiceUnreachable


def test_an_answer_that_takes_too_long_may_still_come_to_pass(ask: Ask, pauses: list[float]) -> None:
    for call, _ in (REPEATABLE["submit_job"], *ONCE.values()):
        service = Service(httpx.ReadTimeout)
        with pytest.raises(AnswerLost):
            call(ask(service))
        assert len(service.seen) == 1


def test_a_deletion_whose_answer_was_lost_has_happened(ask: Ask, pauses: list[float]) -> None:
    ask(Service(httpx.ReadError, refused(404))).delete_job("a")
    with pytest.raises(ServiceRefused):
        ask(Service(refused(404))).delete_job("a")
    with pytest.raises(ServiceRefused):
        ask(Service(httpx.ConnectError, refused(404))).delete_job("a")


class Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Of either kind, from the chunks that it gives."""

    async def __aiter__(self) -> Any:
        for one in self:
            yield one


def test_a_stream_that_breaks_off_is_a_lost_answer(ask: Ask) -> None:
    class Breaking(Stream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"data: " + json.dumps(COMPLETION).encode() + b"\n\n"
            raise httpx.ReadError("gone")

    class Streaming(Service):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, stream=Breaking())

    with pytest.raises(AnswerLost, match=r"does not answer: gone\. The request may have arrived"):
        ask(Streaming()).stream_chat({"messages": []})


def test_who_has_no_token_sends_none(ask: Ask) -> None:
    service = Service(good({"verdict": "too_short", "message": WORDS, "new": 1}))
    answer = ask(service, None).detect_public("a text")
    assert (answer.verdict, answer.message.headline) == ("too_short", "h")
    assert "Authorization" not in service.seen[0].headers
    assert (service.seen[0].url.path, json.loads(service.seen[0].content)) == (
        "/v1/detect/public",
        {"text": "a text"},
    )


def test_the_end_of_a_job_is_waited_for_and_each_step_told(ask: Ask, pauses: list[float]) -> None:
    steps = [{**JOB, "answered": 0}, {**JOB, "status": "running", "answered": 2}]
    end = {**JOB, "status": "finished", "answered": 3, "finished_at": 2.0}
    service, told = Service(*map(good, [*steps, end])), list[int]()
    finished = ask(service).wait_for_job("a", lambda now: told.append(now.answered), poll_seconds=0.5)
    assert (finished.status, told, pauses) == ("finished", [0, 2, 3], [0.5, 0.5])
    assert ask(Service(good(end))).wait_for_job("a") == finished


def pages() -> Service:
    """Five results in pages of two; the sixth document has no answer so far."""
    rows = [{"index": n, "id": str(n), "error": {"code": "c", "message": "m"}} for n in range(5)]
    parts = [
        {"results": rows[n : n + 2], "next_offset": n + 2 if n < 4 else 5, "status": "running"}
        for n in (0, 2, 4)
    ]
    return Service(*map(good, [*parts, {"results": [], "next_offset": 5, "status": "running"}]))


def test_results_are_read_page_by_page_up_to_the_first_document_without(ask: Ask) -> None:
    service = pages()
    assert [one.index for one in ask(service).iter_job_results("a")] == list(range(5))
    assert [request.url.params["offset"] for request in service.seen] == ["0", "2", "4", "5"]
    nothing = Service(good({"results": [], "next_offset": None, "status": "finished"}))
    assert ask(nothing).iter_job_results("a") == []


async def test_a_page_is_asked_for_when_it_is_read() -> None:
    service = pages()
    with Client("http://service", "t", transport=httpx.MockTransport(service)) as client:
        assert [one.index for one in islice(client.iter_job_results("a"), 2)] == [0, 1]
    assert len(service.seen) == 1
    service = pages()
    async with AsyncClient("http://service", "t", transport=httpx.MockTransport(service)) as client:
        results = client.iter_job_results("a")
        assert [(await anext(results)).index for _ in range(2)] == [0, 1]
        await results.aclose()
    assert len(service.seen) == 1


@pytest.mark.parametrize("name", ALL)
def test_every_error_is_of_one_kind(ask: Ask, pauses: list[float], name: str) -> None:
    for answer in (refused(400), refused(500), httpx.Response(418), refused(409), refused(401, "1")):
        service = Service(answer)
        with pytest.raises(ClientError):
            ALL[name][0](ask(service))
        assert len(service.seen) == 1


def test_fields_that_a_newer_service_adds_are_left_out(ask: Ask) -> None:
    key = {"key_id": "k", "version": 1, "profile": "p", "colour": "new"}
    newer = {**DETECTION, "cost": 1, "results": [{**RESULT, "basis": "new", "key": key}]}
    answer = ask(Service(good(newer))).detect(REQUEST)
    assert (answer.results[0].verdict, answer.results[0].key.key_id) == ("not_detected", "k")


@pytest.mark.parametrize(
    ("response", "call", "reason"),
    [
        (httpx.Response(200, text="<html>hello</html>"), "keys", "Invalid JSON"),
        (httpx.Response(200, text=""), "models", "Invalid JSON"),
        (httpx.Response(200, json={"keys": []}), "keys", "scopes: Field required"),
        (httpx.Response(200, json={"data": [{"id": 1}]}), "models", "data.0.id"),
        (httpx.Response(200, json=[]), "models", "should be an object"),
        *(
            (httpx.Response(200, content=content), call, "")
            for content in (b"<html>", b"\xff", b"[1]", b"7")
            for call in ("complete", "chat")
        ),
        (httpx.Response(200, content=b"data: hello\n\n"), "stream_chat", ""),
    ],
)
def test_an_answer_of_another_kind_is_an_error_that_says_what_is_wrong_with_it(ask, response, call, reason):
    arguments = () if call in ("keys", "models") else ({},)
    with pytest.raises(UnexpectedAnswer) as error:
        getattr(ask(Service(response)), call)(*arguments)
    assert error.value.status == 200
    assert str(error.value).startswith("http://service/v1/")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said", "code"),
    [
        (b'{"error": {"message": "no such model", "code": "model_not_found"}}', "no such model", True),
        (b'{"title": "Bad", "detail": "no such model", "code": "model_not_found"}', "no such model", True),
        (b'{"error": {"message": "no such model", "code": null}}', "no such model", False),
        (b'{"title": "Bad", "detail": "' + b"no " * 9_999 + b'"}', "^(no ){666}no$", False),
        *(
            (body, "http://service/v1/completions answered 400", False)
            for body in (
                b"[" * 100_000,
                b"<html>",
                b"null",
                b"[]",
                b'{"error": "gone"}',
                b'{"error": null}',
                b"\xff",
            )
        ),
    ],
)
def test_a_refusal_of_any_shape_has_the_services_words_status_and_code(ask, content, said, code):
    with pytest.raises(ServiceRefused, match=said) as error:
        ask(Service(httpx.Response(400, content=content))).complete({})
    assert (error.value.status, error.value.code) == (400, "model_not_found" if code else None)


def test_an_address_that_is_none_is_a_service_that_cannot_be_reached() -> None:
    for make in (Client, AsyncClient):
        with pytest.raises(ServiceUnreachable, match="is no address") as error:
            make("http://[::1", "t")
        assert error.value.status is None


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ("a", "/v1/detect"),
        (CombinedRequest(inputs=[Document(text="a")]), "/v1/detect"),
        (DirectRequest(inputs=[Document(text="a")], phase="any"), "/v1/detect/direct"),
        (AlignedRequest(inputs=[Document(token_ids=[1])], beta=2.0), "/v1/detect/aligned"),
        (LocalizedRequest(inputs=[Document(text="a")], method="waterseeker"), "/v1/detect/localized"),
    ],
)
def test_the_requests_type_chooses_the_route(ask: Ask, request_: DetectionRequest | str, path: str) -> None:
    service = Service(good(DETECTION))
    ask(service).detect(request_)
    assert service.seen[0].url.path == path
    asked = CombinedRequest(inputs=[Document(text="a")]) if request_ == "a" else request_
    assert type(asked).model_validate_json(service.seen[0].content) == asked


def chunk(content: str) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "a_new_field": 1}
    return b"data: " + json.dumps({**COMPLETION, "choices": [choice]}).encode() + b"\n\n"


def test_a_streamed_chat_is_read_event_by_event(ask: Ask) -> None:
    body = b": keep-alive\n\n" + chunk("one ") + chunk("two") + b"data: [DONE]\n\n"
    pieces = ask(Service(httpx.Response(200, content=body))).stream_chat({"messages": []})
    assert [piece.choices[0].delta.content for piece in pieces] == ["one ", "two"]


def test_a_stream_that_the_service_refuses_or_ends_is_a_refusal(ask: Ask) -> None:
    failed = b'{"error":{"message":"out of memory","type":"t","param":null,"code":"internal_error"}}'
    for status, body in ((500, failed), (200, chunk("one ") + b"data: " + failed + b"\n\n")):
        with pytest.raises(ServiceRefused, match=r"^out of memory$") as error:
            ask(Service(httpx.Response(status, content=body))).stream_chat({"messages": []})
        assert (error.value.status, error.value.code) == (status, "internal_error")


class Endless(Stream):
    """A chat that goes on until it is left."""

    def __init__(self) -> None:
        self.given, self.left = 0, False

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.given += 1
            yield chunk(f"{self.given}")

    def close(self) -> None:
        self.left = True

    async def aclose(self) -> None:
        self.left = True


async def test_a_stream_comes_as_it_is_written_and_who_leaves_it_ends_it() -> None:
    written = Endless()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=written))
    with Client("http://service", "t", transport=transport) as client:
        for event in client.stream_chat({"messages": []}):
            assert event.choices[0].delta.content == "1"
            break
    assert (written.given, written.left) == (1, True)
    written = Endless()
    async with AsyncClient("http://service", "t", transport=transport) as later:
        events = later.stream_chat({"messages": []})
        assert (await anext(events)).choices[0].delta.content == "1"
        await events.aclose()
    assert (written.given, written.left) == (1, True)
