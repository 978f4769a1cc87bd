"""Edits through an OpenAI-compatible endpoint: cached, counted, refused clearly."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from ttmark.evaluation.endpoint import Endpoint, EndpointClient, EndpointError, Usage
from ttmark.evaluation.text_edits import through_endpoint

ENDPOINT = Endpoint("http://endpoint/v1", "m", "secret", prompt_price=2.0, completion_price=10.0)
TEXT = " One two.  Three four. Five six. Seven eight."


def answer(request: httpx.Request) -> httpx.Response:
    assert request.headers["authorization"] == "Bearer secret"
    prompt = orjson.loads(request.content)["messages"][0]["content"]
    message = {"content": prompt.partition("\n\n")[2].upper()}
    usage = {"prompt_tokens": 100, "completion_tokens": 50}
    return httpx.Response(200, json={"choices": [{"message": message}], "usage": usage})


def edit(name: str, cache: Path, handler: Any) -> tuple[str, Usage]:
    usage = Usage()
    client = EndpointClient(ENDPOINT, cache, usage, transport=httpx.MockTransport(handler))
    return through_endpoint(name, TEXT, 0.5, 0, client), usage


def test_the_share_of_the_sentences_is_rewritten_and_the_spaces_stay(tmp_path: Path) -> None:
    edited, _ = edit("paraphrase", tmp_path, answer)
    assert edited.lower() == TEXT.lower()
    assert sum(sentence.isupper() for sentence in edited.split(".")) == 2


def test_answers_are_asked_once_and_priced(tmp_path: Path) -> None:
    first, usage = edit("back-translation", tmp_path, answer)
    assert (usage.requests, usage.cached) == (4, 0)
    assert usage.cost(ENDPOINT) == pytest.approx(4 * (100 * 2.0 + 50 * 10.0) / 1e6)
    again, cached = edit("back-translation", tmp_path, answer)
    assert again == first
    assert (cached.requests, cached.cached, cached.cost(ENDPOINT)) == (0, 4, 0.0)


@pytest.mark.parametrize("named", ["0", "Fri, 31 Dec 1999 23:59:59 GMT", "9" * 5_000, "nan"])
def test_a_busy_endpoint_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    refused, waited = [], list[float]()
    real, this = asyncio.sleep, threading.current_thread()

    async def sleep(seconds: float) -> None:
        await real(0 if (own := threading.current_thread() is this) else seconds)  # others' servers rest, too
        waited.extend([seconds] * own)

    monkeypatch.setattr("ttmark.evaluation.endpoint.asyncio.sleep", sleep)

    def busy_once(request: httpx.Request) -> httpx.Response:
        if request.content not in refused:
            refused.append(request.content)
            return httpx.Response(429, headers={"retry-after": named})
        return answer(request)

    _, usage = edit("paraphrase", tmp_path, busy_once)
    assert usage.requests == 2
    assert len(waited) == 2
    assert all(0 <= seconds <= 120 for seconds in waited)


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (httpx.Response(401, text="no key"), "401 no key"),
        (httpx.Response(200, text="[" * 100_000), "no JSON"),
        *(
            (httpx.Response(200, json=odd), "without text")
            for odd in ({}, [], {"usage": [1]}, {"usage": {"prompt_tokens": "9"}}, {"choices": [[]]})
        ),
    ],
)
def test_what_is_no_answer_is_an_error(tmp_path: Path, response: httpx.Response, message: str) -> None:
    with pytest.raises(EndpointError, match=message):
        edit("paraphrase", tmp_path, lambda _: response)
