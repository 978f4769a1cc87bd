"""Calls of ours against whoever is hostile or slow, and what a proxy of the environment is sent of them."""

import gzip
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.raw_server import HEAD, Talk, endless, proxying, saying, talking
from tests.unit.shared.either_client import EitherClient
from ttmark.shared.client import AnswerLost, Client, ClientError, ServiceUnreachable, UnexpectedAnswer
from ttmark.shared.outgoing import is_inside, is_public

SECONDS = 0.3
NONE = HEAD + b'Content-Length: 12\r\n\r\n{"data": []}'
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"id": "c", "created": 1, "model": "m", "choices": []}\n\n'
PUBLIC = "detect.example.org"
INSIDE = (
    "localhost LOCALHOST. a.localhost 127.0.0.1 127.8.8.8 127.1 2130706433 0x7f000001 0.0.0.0 ::1 :: "
    "10.1.2.3 172.31.0.1 192.168.0.1 ::ffff:10.0.0.1 fd00::1 generation gen-1 detect.acme.svc "
    "detect.acme.svc.cluster.local printer.local db.internal nas.home.arpa"
)
OUTSIDE = (
    "example.org localhost.example.org 127.0.0.1.example.org local.example 8.8.8.8 134744072 0x08080808 "
    "172.32.0.1 192.0.2.1 100.64.0.1 169.254.169.254 ::ffff:8.8.8.8 2001:db8::1 notlocal.locale svc.example"
)


def test_what_is_inside_is_told_by_its_spelling_alone() -> None:
    assert [host for host in INSIDE.split() if not is_inside(host)] == []
    assert [host for host in OUTSIDE.split() if is_inside(host)] == []


def test_what_is_public_is_told_by_its_address() -> None:
    inside = "127.0.0.1 10.1.2.3 169.254.169.254 100.64.0.1 0.0.0.0 ::1 fe80::1%eth0 fd00::1 ::ffff:10.0.0.1"
    assert [address for address in inside.split() if is_public(address)] == []
    assert all(map(is_public, ("8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8")))


class Ask:
    """Makes clients of one kind, of a service that talks as it is told to."""

    def __init__(self, kind: str, opened: ExitStack) -> None:
        self._kind, self._opened = kind, opened

    def at(self, address: str, token: str | None = "secret", **options: Any) -> EitherClient:
        client = EitherClient(self._kind, address, token, **{"retries": 0, "timeout": SECONDS} | options)
        return self._opened.enter_context(client)

    def of(self, talk: Talk, **options: Any) -> EitherClient:
        return self.at(f"http://{self._opened.enter_context(talking(talk))}", **options)


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    with ExitStack() as opened:
        yield Ask(request.param, opened)


@pytest.mark.parametrize(
    "talk",
    [
        endless(b"", b"H", 0.05),
        endless(HEAD, b"X-A: b\r\n", 0.05),
        endless(CHUNKED, b"1\r\n \r\n", 0.05),
        endless(HEAD + b"Content-Length: 999\r\n\r\n", b" ", 0.05),
    ],
    ids=["the first line", "headers", "chunks", "a body of some length"],
)
def test_bytes_that_drip_put_no_deadline_off(ask: Ask, talk: Talk) -> None:
    began = time.monotonic()
    with pytest.raises(ServiceUnreachable, match=r"no whole answer within 0\.3 s"):
        ask.of(talk).complete({})
    assert time.monotonic() - began < 6 * SECONDS


def test_what_was_sent_before_the_deadline_may_have_arrived(ask: Ask) -> None:
    with pytest.raises(AnswerLost, match="no whole answer"):
        ask.of(endless(b"", b"H", 0.05), timeout=1.5).complete({})


def test_one_deadline_is_for_all_tries(ask: Ask) -> None:
    heads = []

    def hangs_up(_: Any, head: bytes) -> None:
        heads.append(head)
        time.sleep(0.4)

    with pytest.raises(ServiceUnreachable, match="no whole answer within 1 s"):
        ask.of(hangs_up, retries=20, timeout=1.0).keys()
    assert 2 <= len(heads) <= 3


def test_of_a_stream_each_event_has_the_whole_time_and_silence_with_comments_has_no_more(ask: Ask) -> None:
    in_time = saying([CHUNKED, *[b"%x\r\n%b\r\n" % (len(EVENT), EVENT)] * 4, b"0\r\n\r\n"], 0.6 * SECONDS)
    assert len(ask.of(in_time).stream_chat({})) == 4
    with pytest.raises(AnswerLost, match="no whole answer"):
        ask.of(endless(CHUNKED, b"6\r\n: hm\n\n\r\n", 0.05)).stream_chat({})


PACKED = gzip.compress(b" " * 10_000_000)


@pytest.mark.parametrize(
    ("talk", "said"),
    [
        (endless(CHUNKED, b"%x\r\n%b\r\n" % (2**16, b" " * 2**16)), "more than 1000000 bytes"),
        (endless(HEAD.replace(b"200 OK", b"500 No") + b"\r\n", b" " * 2**16), "more than 1000000 bytes"),
        (saying([HEAD, b"Content-Encoding: gzip\r\n\r\n", PACKED]), "packed"),
    ],
    ids=["without end", "a failure without end", "vast when unpacked"],
)
def test_no_more_is_read_than_the_caller_takes(ask: Ask, talk: Talk, said: str) -> None:
    for call in (lambda client: client.keys(), lambda client: client.stream_chat({})):
        with pytest.raises(UnexpectedAnswer, match=said):
            call(ask.of(talk, most_bytes=1_000_000, timeout=20.0))


async def test_a_client_that_blocks_can_be_used_beside_a_running_loop() -> None:
    with talking(saying([NONE])) as host, Client(f"http://{host}", None) as client:
        assert client.models().data == []


def test_a_client_that_blocks_is_never_waited_for_on_the_loop_of_its_own_calls() -> None:
    def asks_another(request: httpx.Request) -> httpx.Response:
        with Client("http://other", None, transport=httpx.MockTransport(here)) as other:
            other.models()
        return here(request)

    outer = Client("http://service", None, transport=httpx.MockTransport(asks_another))
    with outer, pytest.raises(RuntimeError, match="would wait for itself"):
        outer.models()


class Environment:
    """A proxy of the environment, and what it was sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, opened: ExitStack) -> None:
        self.sent: list[bytes] = []
        self.monkeypatch, self._opened = monkeypatch, opened
        for name in ("http", "https", "all", "no"):
            monkeypatch.delenv(f"{name}_proxy", raising=False)
            monkeypatch.delenv(f"{name.upper()}_PROXY", raising=False)

    def proxy(self, *names: str, target: str = "127.0.0.1:9") -> None:
        where = self._opened.enter_context(talking(proxying(self.sent, target)))
        for name in names:
            self.monkeypatch.setenv(name, f"http://user:hidden@{where}")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Environment]:
    with ExitStack() as opened:
        yield Environment(monkeypatch, opened)


def here(_: httpx.Request) -> httpx.Response:
    """What is asked without a proxy."""
    return httpx.Response(200, json={"data": []})


@pytest.mark.parametrize(
    ("url", "no_proxy"),
    [
        (None, ""),
        ("http://generation:8000", ""),
        ("https://10.0.0.7", ""),
        (f"https://{PUBLIC}", "*"),
        (f"https://{PUBLIC}", "a.b, .EXAMPLE.org"),
        (f"https://{PUBLIC}", "*.example.org"),
        (f"https://{PUBLIC}", "example.org:443"),
        ("https://203.0.113.9", "203.0.113.0/24"),
        ("https://[2001:db8::1]", "2001:db8::/32"),
    ],
)
def test_who_is_inside_and_whom_no_proxy_names_are_asked_directly(ask, environment, url, no_proxy):
    environment.proxy("http_proxy", "https_proxy", "ALL_PROXY")
    environment.monkeypatch.setenv("NO_PROXY", no_proxy)
    beyond = httpx.MockTransport(here)
    client = ask.of(saying([NONE])) if url is None else ask.at(url, transport=beyond)
    assert client.models().data == []
    assert environment.sent == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `cert` and `key` of the public service."""
    folder = tmp_path_factory.mktemp("certificate")
    made = (
        "-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=a -keyout key -out cert"
    )
    command = ["openssl", "req", *made.split(), "-addext", f"subjectAltName=DNS:{PUBLIC}"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("no_proxy", ["", "ample.org", "example.org:8443, 203.0.113.0/24 ,. ,"])
def test_others_are_asked_by_the_proxy_in_tls_which_the_token_is_in(ask, environment, no_proxy, certificate):
    tls, inner = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), list[bytes]()
    tls.load_cert_chain(certificate / "cert", certificate / "key")

    def service(connection: Any, head: bytes) -> None:
        inner.append(head)
        connection.sendall(NONE)

    environment.monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert"))
    environment.monkeypatch.setenv("NO_PROXY", no_proxy)
    with talking(service, tls) as target:
        environment.proxy("HTTPS_PROXY", target=target)
        assert ask.at(f"https://{PUBLIC}", timeout=10.0).models().data == []
    (head,) = environment.sent
    assert head.startswith(b"CONNECT detect.example.org:443 HTTP/1.1\r\n")
    assert b"secret" not in head
    assert b"Bearer secret" in inner[0]


def test_a_stranger_sends_nobody_to_a_name_that_leads_inside(ask, environment, certificate) -> None:
    """Seen of the connection, before a byte: what a name meant a moment earlier says nothing."""
    tls, asked = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), list[bytes]()
    tls.load_cert_chain(certificate / "cert", certificate / "key")

    def service(connection: Any, head: bytes) -> None:
        asked.append(head)
        connection.sendall(NONE)

    place = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
    environment.monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: place)
    environment.monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert"))
    with talking(service, tls) as where, ExitStack() as expected:
        named = f"https://{PUBLIC}:{where.partition(':')[2]}"
        expected.enter_context(pytest.raises(ServiceUnreachable, match="its name leads to no public address"))
        assert ask.at(named, timeout=10.0).models().data == []
        ask.at(named, timeout=10.0, public_only=True).models()
    assert len(asked) == 1


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
def test_no_token_leaves_by_a_proxy_in_the_clear(ask: Ask, environment: Environment, variable: str) -> None:
    environment.proxy(variable)
    for told in (False, True):
        with pytest.raises(ServiceUnreachable, match="which could read it: ask over https") as error:
            ask.at(f"http://{PUBLIC}", plain_http=told).detect("a text")
        assert "hidden" not in str(error.value)
    assert environment.sent == []
    with pytest.raises(UnexpectedAnswer):  # what the proxy says is nothing
        ask.at(f"http://{PUBLIC}", None).detect_public("a text")
    (head,) = environment.sent
    assert head.startswith(b"POST http://detect.example.org/v1/detect/public HTTP/1.1\r\n")


@pytest.mark.parametrize("host", [PUBLIC, "8.8.8.8", "134744072", "[2001:db8::1]"])
def test_a_token_leaves_in_the_clear_only_where_that_is_allowed(ask, environment, host) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return here(request)

    network = httpx.MockTransport(answer)
    with pytest.raises(ServiceUnreachable, match="allow it with --plain-http"):
        ask.at(f"http://{host}", transport=network).models()
    assert seen == []
    assert ask.at(f"http://{host}", None, transport=network).models().data == []
    assert ask.at(f"http://{host}", plain_http=True, transport=network).models().data == []
    assert [request.headers.get("Authorization") for request in seen] == [None, "Bearer secret"]


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("socks5://user:hidden@127.0.0.1:9", r"\(socks5://127.0.0.1:9\) cannot be used"),
        ("gopher://127.0.0.1:9", r"\(gopher://127.0.0.1:9\) cannot be used"),
        ("http://127.0.0.1:http", "cannot be used"),
        ("user:hidden@127.0.0.1:9", r"the proxy of the environment \(http://127.0.0.1:9\): "),
    ],
)
def test_what_is_wrong_with_a_proxy_is_one_line_without_its_password(ask, environment, proxy, said) -> None:
    environment.monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ClientError, match=said) as error:
        ask.at(f"https://{PUBLIC}").keys()
    assert "hidden" not in str(error.value)
    assert "\n" not in str(error.value)
    assert ask.at("http://127.0.0.1", transport=httpx.MockTransport(here)).models().data == []


def test_a_proxy_that_refuses_is_named_and_nothing_has_arrived(ask: Ask, environment: Environment) -> None:
    with talking(saying([b"HTTP/1.1 403 Not here\r\nContent-Length: 0\r\n\r\n"])) as where:
        environment.monkeypatch.setenv("https_proxy", f"http://{where}")
        with pytest.raises(ServiceUnreachable, match=rf"\(http://{where}\): 403 Not here") as error:
            ask.at(f"https://{PUBLIC}", timeout=5.0).complete({})
    assert type(error.value) is ServiceUnreachable


def test_certificates_that_are_not_there_are_one_line(ask, environment, tmp_path: Path) -> None:
    environment.monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    with pytest.raises(ServiceUnreachable, match="SSL_CERT_FILE and SSL_CERT_DIR name no certificates"):
        ask.at("https://127.0.0.1:9").keys()
