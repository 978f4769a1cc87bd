"""Connections that send nothing of use: they are closed in time, and lock nobody out meanwhile."""

import asyncio
import queue
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

from tests.harness.listening import listening
from ttmark.shared.http.connections import ConnectionLimits, allow_open_files, bounded_protocol
from ttmark.shared.http.request_body import HttpLimits

HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"
Serve = Callable[..., int]


GONE: "queue.Queue[bool]" = queue.Queue()


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the length of the body; of `/long` after a while: `GONE` is told who went before."""
    size, more = 0, scope["path"] != "/unread"
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        if message["type"] == "http.disconnect":
            return
    if scope["path"] == "/long":
        with suppress(TimeoutError):
            await asyncio.wait_for(receive(), float(scope["query_string"]))
            GONE.put(True)
            return
        GONE.put(False)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server with limits; its port."""
    with ExitStack() as ends:

        def start(keep_alive: int = 5, **limits: Any) -> int:
            protocol = bounded_protocol(ConnectionLimits(**limits))
            return ends.enter_context(listening(echo, http=protocol, timeout_keep_alive=keep_alive))

        yield start


def connect(port: int, data: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(data)
    return connection


def seconds_until_closed(connection: socket.socket, drip: bytes = b"") -> tuple[float, bytes]:
    """How long the server keeps it while `drip` comes again and again, and what it said."""
    started, said = time.monotonic(), b""
    connection.settimeout(0.1 if drip else 60)
    while time.monotonic() - started < 60:
        try:
            if drip:
                connection.sendall(drip)
            data = connection.recv(4096)
        except TimeoutError:
            continue
        except OSError:
            break
        said += data
        if not data:
            break
    connection.close()
    return time.monotonic() - started, said


@pytest.mark.parametrize(
    ("first", "drip"),
    [
        pytest.param(b"", b"", id="silence"),
        pytest.param(HEAD, b"", id="headers without an end"),
        pytest.param(HEAD, b"X: y\r\n", id="headers that never end"),
        pytest.param(HEAD + b"\r\n" + HEAD, b"X: y\r\n", id="the headers of a second request"),
        pytest.param(HEAD + b"\r\n", b"\r\n", id="empty lines after a request"),
    ],
)
def test_headers_that_do_not_end_end_the_connection(serve: Serve, first: bytes, drip: bytes) -> None:
    port = serve(header_seconds=0.4)
    seconds, _ = seconds_until_closed(connect(port, first), drip)
    assert 0.2 < seconds < 30


def test_who_is_late_with_the_headers_is_told(serve: Serve) -> None:
    _, said = seconds_until_closed(connect(serve(header_seconds=0.5), HEAD))
    assert said.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", [b"/", b"/unread"])
def test_a_body_that_does_not_end_ends_the_connection(serve, path, monkeypatch):
    monkeypatch.setattr("ttmark.shared.http.connections._GRACE_SECONDS", 0.1)
    port = serve(header_seconds=60.0, body_seconds=0.4)
    seconds, _ = seconds_until_closed(
        connect(port, POST.replace(b" / ", b" " + path + b" ").replace(b"10", b"999999")), b"x"
    )
    assert 0.2 < seconds < 30


def test_a_request_that_comes_in_time_is_answered_however_it_is_cut(serve: Serve) -> None:
    port = serve(header_seconds=20.0, body_seconds=20.0)
    connection = connect(port)
    for _ in range(2):
        for byte in POST + b"0123456789":
            connection.sendall(bytes([byte]))
        answer = b""
        while not answer.endswith(b"\r\n\r\n10"):  # head and body may come apart
            more = connection.recv(4096)
            assert more, answer
            answer += more
    connection.close()


def test_half_open_connections_lock_nobody_out(serve: Serve) -> None:
    port = serve(header_seconds=60.0, max_connections=20)
    held = [connect(port, HEAD) for _ in range(100)]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        for _ in range(5):
            assert http.get("/", headers={"Connection": "close"}).text == "0"
    assert all(seconds_until_closed(connection)[0] < 30 for connection in held[:70])
    for connection in held[70:]:
        connection.close()


def test_connections_between_two_requests_lock_nobody_out(serve: Serve) -> None:
    port = serve(header_seconds=60.0, max_connections=20, keep_alive=60)
    held = [connect(port, HEAD + b"\r\n") for _ in range(20)]
    assert all(connection.recv(4096).startswith(b"HTTP/1.1 200 ") for connection in held)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        for _ in range(5):
            assert http.get("/", headers={"Connection": "close"}).text == "0"
    for connection in held:
        connection.close()


def test_an_idle_connection_is_kept_for_the_time_that_is_set(serve: Serve) -> None:
    seconds, said = seconds_until_closed(connect(serve(keep_alive=1, header_seconds=0.2), HEAD + b"\r\n"))
    assert said.startswith(b"HTTP/1.1 200 ")
    assert 0.9 < seconds < 30


def test_a_request_under_way_is_never_closed_for_a_new_connection(serve: Serve) -> None:
    port = serve(header_seconds=60.0, max_connections=2)
    under_way = [
        connect(port, POST.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")) for _ in range(2)
    ]
    for connection in under_way:
        assert connection.recv(4096).startswith(b"HTTP/1.1 100 ")
    assert seconds_until_closed(connect(port, HEAD))[0] < 30
    for connection in under_way:
        connection.sendall(b"0123456789")
        answer = b""
        while not answer.endswith(b"\r\n\r\n10"):  # head and body may come one after the other
            piece = connection.recv(4096)
            assert piece, answer
            answer += piece
        connection.close()


def test_the_limit_of_open_files_is_raised_or_the_connections_are_fewer(monkeypatch):
    limit = [1024, 4000]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limit))
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limit.__setitem__(slice(None), both))
    assert allow_open_files(ConnectionLimits(max_connections=2000)).max_connections == 2000
    assert limit == [2256, 4000]
    assert allow_open_files(ConnectionLimits(max_connections=9000)).max_connections == 3744
    assert limit == [4000, 4000]
    assert allow_open_files(ConnectionLimits(max_connections=10)).max_connections == 10
    assert limit == [4000, 4000]


LAST = b"Host: a\r\nConnection: Close\r\n\r\n"


@pytest.mark.parametrize("seconds", [b"0", b"0.5"])
def test_who_closes_its_sending_half_after_the_last_request_is_answered(serve, seconds, monkeypatch):
    monkeypatch.setattr("ttmark.shared.http.connections._PROBE_SECONDS", 0.1)
    connection = connect(serve(), b"GET /long?%b HTTP/1.1\r\n" % seconds + LAST)
    connection.shutdown(socket.SHUT_WR)
    _, said = seconds_until_closed(connection)
    *interim, answer = said.split(b"HTTP/1.1 ")[1:]
    assert answer.startswith(b"200 ")
    assert answer.endswith(b"\r\n\r\n0")
    assert set(interim) == ({b"102 Processing\r\n\r\n"} if seconds != b"0" else set())
    assert GONE.get(timeout=30) is False


@pytest.mark.parametrize(
    ("asked", "closes"),
    [
        (b"GET /long?30 HTTP/1.1\r\n" + LAST, socket.socket.close),
        (b"GET /long?30 HTTP/1.1\r\nHost: a\r\n\r\n", socket.socket.close),
        (b"GET /long?30 HTTP/1.1\r\nHost: a\r\n\r\n", lambda one: one.shutdown(socket.SHUT_WR)),
        (b"GET /long?30 HTTP/1.0\r\n" + LAST, lambda one: one.shutdown(socket.SHUT_WR)),
    ],
)
def test_work_for_who_has_gone_ends_soon(serve, asked, closes, monkeypatch):
    """Who says nothing of a last request has gone once one half is closed; and nobody asks HTTP/1.0."""
    monkeypatch.setattr("ttmark.shared.http.connections._PROBE_SECONDS", 0.1)
    with connect(serve(), asked) as connection:
        closes(connection)
        assert GONE.get(timeout=10) is True


def test_a_body_has_as_long_on_the_connection_as_it_has_in_the_application() -> None:
    assert HttpLimits().body_seconds == ConnectionLimits().body_seconds
