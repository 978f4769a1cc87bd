"""The streamed answer of the demonstration."""

import io
import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ttmark.services.cli.demonstration import print_stream, stream_answer
from ttmark.services.startup import StartupError
from ttmark.shared.client import Client

CHUNK = {"id": "c", "created": 1, "model": "m"}


def answer(status: int, body: bytes) -> list[str]:
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=body))
    with Client("http://gen", "token", retries=0, transport=transport) as generation:
        return list(stream_answer(generation, {}))


def event(document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def delta(content: str | None) -> bytes:
    choice = {"index": 0, "delta": {} if content is None else {"content": content}}
    return event({**CHUNK, "choices": [choice]})


def test_pieces_come_in_order_and_usage_is_passed_over() -> None:
    counts = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    usage = event({**CHUNK, "choices": [], "usage": counts})
    body = delta(None) + delta("one ") + delta("two") + usage + b"data: [DONE]\n\n"
    assert [piece for piece in answer(200, body) if piece] == ["one ", "two"]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, b'{"error": {"message": "no such token"}}', "the chat failed: no such token"),
        (500, b"<html>", "the chat failed: .* answered 500"),
        (502, b"<html>", "the chat broke off: .* answered 502. The request may have arrived"),
        (200, delta("one") + event({"error": {"message": "gone"}}), "the chat failed: gone"),
    ],
)
def test_a_refusal_or_a_failure_is_one_line(status: int, body: bytes, message: str) -> None:
    with pytest.raises(StartupError, match=message):
        answer(status, body)


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
