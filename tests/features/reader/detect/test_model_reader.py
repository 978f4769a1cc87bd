"""The client of readers against real servers: honest ones, and those that lie, hang, drip or break."""

import json
import math
import ssl
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import processors

from tests.unit.detect_service.conftest import byte_tokenizer
from ttmark.detect_service.features.reader import reader_client as addresses
from ttmark.detect_service.features.reader.dialect import (
    Dialect,
    ReaderBusy,
    ReaderDown,
    ReaderElsewhere,
    ReaderRefused,
    TokenRefused,
    ttmark_dialect,
)
from ttmark.detect_service.features.reader.reader_client import ReaderClient, is_local
from ttmark.detect_service.features.reader.reads_along import PROBE
from ttmark.detect_service.features.reader.vllm_dialect import vllm_dialect
from ttmark.shared.byte_reading import InvalidReading
from ttmark.shared.tokenization import TextTokenizer

TEXTS = ["It was a dark night.", "Ça coûte 3 €, 漢字 😀"]
Answer = Callable[["Handler", dict[str, Any]], None]
SECONDS = 0.8


class Handler(BaseHTTPRequestHandler):
    """Does what the server's `answer` does."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server: Any = self.server
        content = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(content)
        tried = body.get("texts") == [PROBE]
        (server.tries if tried else server.asked).append((self.path, dict(self.headers), body))
        try:
            server.answer(self, body)
        except OSError:
            self.close_connection = True

    def say(self, content: bytes | str, status: int = 200, **headers: str) -> None:
        content = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.answer, server.asked, server.tries = True, answer, [], []
    server.released = threading.Event()
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()


@asynccontextmanager
async def asking(server: Any, dialect: Dialect | None = None, **given: Any) -> AsyncIterator[ReaderClient]:
    address = given.pop("address", f"http://127.0.0.1:{server.server_address[1]}")
    options = {"token": "t0ken", "timeout_seconds": 20.0} | given
    client = ReaderClient(address, dialect or ttmark_dialect("small"), **options)
    try:
        yield client
    finally:
        await client.aclose()


def honest_reading(text: str) -> dict[str, Any]:
    """Parts of three bytes, each of probability one half."""
    size = len(text.encode())
    starts = list(range(0, size, 3))
    ends = [*starts[1:], size]
    return {
        "sha256": sha256(text.encode()).hexdigest(),
        "starts": starts,
        "ends": ends,
        "logprobs": [-math.log(2)] * len(ends),
    }


def honest(handler: Handler, body: dict[str, Any]) -> None:
    handler.say(json.dumps({"model": "small", "readings": [honest_reading(text) for text in body["texts"]]}))


async def test_texts_are_read_with_the_token_and_nothing_else_is_sent() -> None:
    with serving(honest) as server:
        async with asking(server) as client:
            readings = await client.read(TEXTS)
    for text, reading in zip(TEXTS, readings, strict=True):
        size = len(text.encode())
        assert reading.surprise(np.array([[0, size]])).tolist() == [pytest.approx(math.ceil(size / 3))]
    ((path, headers, body),) = server.asked
    assert (path, headers["Authorization"]) == ("/v1/readings", "Bearer t0ken")
    assert headers["Accept-Encoding"] == "identity"
    assert headers["Host"] == f"127.0.0.1:{server.server_address[1]}"
    assert body == {"model": "small", "texts": TEXTS}


async def test_many_texts_are_sent_in_requests_that_the_reader_takes() -> None:
    texts = [f"Text number {number}." for number in range(130)] + ["a" * 140_000, "b"]
    with serving(honest) as server:
        async with asking(server) as client:
            readings = await client.read(texts)
    assert [int(reading.ends[-1]) for reading in readings] == [len(text) for text in texts]
    assert [len(body["texts"]) for *_, body in server.asked] == [64, 64, 2, 1, 1]


def lies(**change: Any) -> Answer:
    """A reader that is honest but for some fields of its second reading."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        readings = [honest_reading(text) for text in body["texts"]]
        readings[1] |= {name: value(readings[1]) for name, value in change.items()}
        handler.say(json.dumps({"readings": readings}))

    return answer


def says(content: str | bytes, **headers: str) -> Answer:
    return lambda handler, _: handler.say(content, **headers)


LIES: dict[str, Answer] = {  # more of those in one reading are in tests/unit/shared/test_byte_reading.py
    "NaN": lies(logprobs=lambda own: [math.nan, *own["logprobs"][1:]]),
    "a gap": lies(starts=lambda own: [0, 4, *own["starts"][2:]]),
    "another text": lies(sha256=lambda own: "0" * 64),
    "a swapped text": lambda handler, body: honest(handler, {"texts": body["texts"][::-1]}),
    "a text too few": lambda handler, body: honest(handler, {"texts": body["texts"][1:]}),
    "no readings": says("{}"),
    "a list": says("[]"),
    "no JSON": says("<html>"),
    "half of it": says('{"readings": ['),
    "depth": says("[" * 100_000),
    "a vast number": says('{"readings": [' + "9" * 10_000 + "]}"),
    "nothing": says(""),
    "packed": says(b"\x1f\x8b" + bytes(100), Content_Encoding="gzip"),
    "more than it can have to say": lambda handler, body: handler.say(
        json.dumps({"readings": [honest_reading(text) for text in body["texts"]]}) + " " * 2_000_000
    ),
}


@pytest.mark.parametrize("lie", LIES)
async def test_of_a_reader_that_lies_nothing_is_taken(lie: str) -> None:
    with serving(LIES[lie]) as server:
        async with asking(server) as client:
            with pytest.raises(InvalidReading):
                await client.read(TEXTS)


def hangs(handler: Handler, _: object) -> None:
    server: Any = handler.server
    server.released.wait(20)


def drips(handler: Handler, _: object) -> None:
    server: Any = handler.server
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not server.released.wait(0.05):
        handler.wfile.write(b" ")


def breaks_off(handler: Handler, _: object) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"readings"')
    handler.close_connection = True


def sends_elsewhere(handler: Handler, _: object) -> None:
    handler.say("", 307, Location=f"http://127.0.0.1:{handler.server.server_address[1]}/again")


def refuses(status: int) -> Answer:
    return lambda handler, _: handler.say("", status)


@pytest.mark.long
@pytest.mark.parametrize("trouble", [hangs, drips, breaks_off, sends_elsewhere, refuses(500), refuses(401)])
async def test_a_reader_in_trouble_is_down_within_the_time_out(trouble: Answer) -> None:
    with serving(trouble) as server:
        async with asking(server, timeout_seconds=SECONDS) as client:
            began = time.monotonic()
            with pytest.raises(ReaderDown):
                await client.read(TEXTS)
            assert time.monotonic() - began < SECONDS + 0.5
    assert len(server.asked) <= 1


@pytest.mark.parametrize(
    ("status", "headers", "kind", "seconds"),
    [
        (413, {}, ReaderRefused, None),
        (403, {}, TokenRefused, None),
        (429, {"Retry_After": "2"}, ReaderBusy, 2.0),
        (503, {"Retry_After": "86400"}, ReaderBusy, 3.0),
        (503, {}, ReaderBusy, 1.0),
        (429, {"Retry_After": "Wed, 21 Oct 2026 07:28:00 GMT"}, ReaderBusy, 1.0),
        (429, {"Retry_After": "-1"}, ReaderBusy, 1.0),
        (502, {}, ReaderDown, None),
    ],
)
async def test_what_a_reader_says_of_itself_is_told_apart(
    status: int, headers: dict[str, str], kind: type[Exception], seconds: float | None
) -> None:
    with serving(lambda handler, _: handler.say("", status, **headers)) as server:
        async with asking(server) as client:
            with pytest.raises(kind) as said:
                await client.read(TEXTS)
    assert said.type is kind
    assert getattr(said.value, "seconds", None) == seconds


INSIDE = "127.0.0.1 127.8.9.1 ::1 10.1.2.3 172.31.0.1 192.168.1.1 fd12::1 ::ffff:10.0.0.1"
OUTSIDE = (
    "8.8.8.8 172.32.0.1 100.64.0.1 169.254.169.254 192.0.2.1 0.0.0.0 2001:4860:4860::8888 ::ffff:8.8.8.8 "
    "fe80::1%eth0"
)
ELSEWHERE = "http://8.8.8.8:80 https://[2001:4860:4860::8888] ftp://127.0.0.1 http:// http://[::1 127.0.0.1"


def test_loopback_and_private_addresses_are_inside_and_a_reader_outside_is_refused_at_once():
    assert [address for address in INSIDE.split() if not is_local(address)] == []
    assert [address for address in OUTSIDE.split() if is_local(address)] == []
    for address in ELSEWHERE.split():
        with pytest.raises(ReaderElsewhere):
            ReaderClient(address, ttmark_dialect("small"))


def test_a_reader_outside_is_taken_where_that_is_wanted_and_a_client_shows_no_token() -> None:
    ReaderClient("http://8.8.8.8:80", ttmark_dialect("small"), anywhere=True)
    ReaderClient("https://8.8.8.8", ttmark_dialect("small"), token="t0ken", anywhere=True)
    with pytest.raises(ReaderElsewhere, match="over https alone"):
        ReaderClient("http://8.8.8.8:80", ttmark_dialect("small"), token="t0ken", anywhere=True)
    client = ReaderClient("http://127.0.0.1:1", ttmark_dialect("small"), token="t0ken")
    assert "t0ken" not in repr(client) + str(vars(client))


async def test_a_name_that_leads_outside_later_gets_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(honest) as server:
        port = server.server_address[1]
        async with asking(server, address=f"http://localhost:{port}") as client:
            assert len(await client.read(TEXTS)) == 2
            assert server.asked[0][1]["Host"] == f"localhost:{port}"
            monkeypatch.setattr(addresses, "is_local", lambda address: False)
            with pytest.raises(ReaderElsewhere):
                await client.read(TEXTS)
    assert len(server.asked) == 1


async def test_a_name_that_nobody_knows_is_a_reader_that_is_down() -> None:
    with serving(honest) as server:
        async with asking(server, address="http://no-such-reader.invalid:80") as client:
            with pytest.raises(ReaderDown):
                await client.read(TEXTS)


async def test_no_proxy_of_the_environment_sees_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(honest) as proxy, serving(honest) as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.server_address[1]}")
        async with asking(server, anywhere=True) as client:
            await client.read(TEXTS)
    assert (len(proxy.asked), len(server.asked)) == (0, 1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key for the name `localhost`, in PEM."""
    file = tmp_path_factory.mktemp("tls") / "reader.pem"
    made = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 1 -subj /CN=reader "
        "-addext subjectAltName=DNS:localhost -keyout -"
    )
    file.write_bytes(subprocess.run(made.split(), check=True, capture_output=True).stdout)
    return file


async def test_a_reader_s_certificate_is_checked_by_its_name(certificate: Path) -> None:
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=certificate)
    with serving(honest, own) as server:
        port = server.server_address[1]
        async with asking(server, address=f"https://localhost:{port}", tls=trusting) as client:
            assert len(await client.read(TEXTS)) == 2
        for address, tls in (
            (f"https://localhost:{port}", ssl.create_default_context()),
            (f"https://127.0.0.1:{port}", trusting),
        ):
            async with asking(server, address=address, tls=tls) as client:
                with pytest.raises(ReaderDown):
                    await client.read(TEXTS)
    assert len(server.asked) == 1


SPECIAL = "<s>"


def reader_tokenizer(*, begins: bool) -> TextTokenizer:
    """A token for each byte; with `begins` one that stands before each text."""
    backend = byte_tokenizer().backend
    backend.add_special_tokens([SPECIAL])
    if begins:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{SPECIAL} $A", special_tokens=[(SPECIAL, 256)]
        )
    return TextTokenizer(backend)


def logprob(before: list[int], token: int) -> float:
    """Of a model that looks back three tokens."""
    return -((sum(before[-3:]) * 7 + token) % 50) / 10


def as_vllm(
    handler: Handler, body: dict[str, Any], change: Callable[[list[Any]], Any] = lambda said: said
) -> None:
    choices = []
    for index, prompt in enumerate(body["prompt"]):
        said: list[Any] = [None]
        for place in range(1, len(prompt)):
            own = {"logprob": logprob(prompt[:place], prompt[place]), "rank": 9, "decoded_token": "x"}
            likeliest = {"logprob": -0.1, "rank": 1, "decoded_token": "y"}
            said.append({"99999": likeliest, str(prompt[place]): own})
        choices.append({"index": index, "text": "", "prompt_logprobs": change(said)})
    handler.say(json.dumps({"object": "text_completion", "choices": choices[::-1]}))


@pytest.mark.parametrize("begins", [True, False])
async def test_vllm_s_log_probabilities_are_those_of_the_bytes_of_the_text(begins: bool) -> None:
    tokenizer = reader_tokenizer(begins=begins)
    texts = [*TEXTS, "A text that is longer than the context of its reader. " * 4]
    with serving(as_vllm) as server:
        async with asking(server, vllm_dialect("small", tokenizer, 40)) as client:
            readings = await client.read(texts)
    start = [256] if begins else []
    for text, reading in zip(texts, readings, strict=True):
        ids = [*start, *tokenizer.encode(text)]
        whole = [logprob(ids[:place], ids[place]) for place in range(1, len(ids))]
        assert reading.logprobs.tolist() == pytest.approx(whole if begins else [0.0, *whole])
        assert reading.ends.tolist() == list(range(1, len(text.encode()) + 1))
    ((path, _, body),) = server.asked
    assert path == "/v1/completions"
    assert (body["temperature"], body["max_tokens"], body["top_p"]) == (1.0, 1, 1.0)
    assert max(map(len, body["prompt"])) == 40


VLLM_LIES: dict[str, Callable[[list[Any]], Any]] = {
    "another token": lambda said: [None, {"7777": {"logprob": -1.0}}, *said[2:]],
    "one too few": lambda said: said[:-1],
    "nothing": lambda said: None,
    "NaN": lambda said: [None, {key: {"logprob": math.nan} for key in said[1]}, *said[2:]],
    "a hole": lambda said: [*said[:-1], None],
    "words": lambda said: [None, {key: {"logprob": "-1"} for key in said[1]}, *said[2:]],
    "no logprob": lambda said: [None, {key: {} for key in said[1]}, *said[2:]],
    "a list of numbers": lambda said: [-1.0] * len(said),
    "more than certain": lambda said: [None, {key: {"logprob": 1.0} for key in said[1]}, *said[2:]],
}


VLLM_CHOICES: list[list[Any]] = [
    [],
    [{"index": 0}, {"index": 0}],
    [{"index": 5}, {"index": 1}],
    [1, 2],
    [{"index": [1]}, {"index": {}}],
    [{"index": 0, "prompt_logprobs": 3}, {"index": 1, "prompt_logprobs": 4}],
]


@pytest.mark.parametrize("lie", [*VLLM_LIES, *range(len(VLLM_CHOICES))])
async def test_of_a_vllm_that_lies_nothing_is_taken(lie: str | int) -> None:
    def answer(handler: Handler, body: dict[str, Any]) -> None:
        if isinstance(lie, str):
            as_vllm(handler, body, VLLM_LIES[lie])
        else:
            handler.say(json.dumps({"choices": VLLM_CHOICES[lie]}))

    with serving(answer) as server:
        async with asking(server, vllm_dialect("small", reader_tokenizer(begins=True), 100)) as client:
            with pytest.raises(InvalidReading):
                await client.read(TEXTS)
