"""The streamed answer of the demonstration."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ttmark.services.cli.demonstration import print_stream, stream_answer
from ttmark.services.startup import StartupError
from ttmark.shared.client import Client

CHUNK = {"id": "c", "created": 1, "model": "m"}


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert request["stream"] is True
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def answer(url: str) -> list[str]:
    with Client(url, "token", retries=0) as generation:
        return list(stream_answer(generation, {}))


def event(document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def delta(content: str | None) -> bytes:
    choice = {"index": 0, "delta": {} if content is None else {"content": content}}
    return event({**CHUNK, "choices": [choice]})


def test_pieces_come_in_order_and_comments_and_usage_are_passed_over() -> None:
    counts = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    usage = event({**CHUNK, "choices": [], "usage": counts})
    body = b": keep-alive\n\n" + delta(None) + delta("one ") + delta("two") + usage + b"data: [DONE]\n\n"
    with answering(200, body) as url:
        assert [piece for piece in answer(url) if piece] == ["one ", "two"]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, b'{"error": {"message": "no such token"}}', "the chat failed: no such token"),
        (500, b"<html>", "the chat failed: .* answered 500"),
        (502, b"<html>", "the chat broke off: .* answered 502. The request may have arrived"),
        (
            200,
            delta("one") + event({"error": {"message": "out of memory"}}),
            "the chat failed: out of memory",
        ),
    ],
)
def test_a_refusal_or_a_failure_is_one_line(status: int, body: bytes, message: str) -> None:
    with answering(status, body) as url, pytest.raises(StartupError, match=message):
        answer(url)


def test_a_service_that_is_gone_is_one_line() -> None:
    with pytest.raises(StartupError, match="broke off"):
        answer("http://127.0.0.1:9")


@given(st.lists(st.text(alphabet="ab [\n", max_size=12), max_size=12))
def test_an_answer_is_printed_whole_on_lines_that_fit(pieces: list[str]) -> None:
    written = io.StringIO()
    assert print_stream(pieces, Console(file=written, width=20)) == "".join(pieces)
    assert "".join(written.getvalue().split()) == "".join("".join(pieces).split())
    assert all(len(line.rstrip()) <= 20 for line in written.getvalue().splitlines())


def test_words_stay_whole() -> None:
    written = io.StringIO()
    print_stream(["twelve le", "tters and ", "more words"], Console(file=written, width=14))
    assert written.getvalue().split("\n") == ["twelve letters", "and more words", ""]
