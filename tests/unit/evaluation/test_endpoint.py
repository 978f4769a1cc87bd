"""Edits through an OpenAI-compatible endpoint: its answers are kept, and its errors clear."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from ttmark.evaluation.endpoint import Endpoint, EndpointClient, EndpointError
from ttmark.evaluation.text_edits import through_endpoint

ENDPOINT = Endpoint("http://endpoint/v1", "m", "secret")
TEXT = " One two.  Three four. Five six. Seven eight."


def answer(request: httpx.Request) -> httpx.Response:
    assert request.headers["authorization"] == "Bearer secret"
    prompt = orjson.loads(request.content)["messages"][0]["content"]
    message = {"content": prompt.partition("\n\n")[2].upper()}
    return httpx.Response(200, json={"choices": [{"message": message}]})


def edit(name: str, cache: Path, handler: Any) -> str:
    client = EndpointClient(ENDPOINT, cache, transport=httpx.MockTransport(handler))
    return through_endpoint(name, TEXT, 0.5, 0, client)


def test_the_share_of_the_sentences_is_rewritten_and_the_spaces_stay(tmp_path: Path) -> None:
    edited = edit("paraphrase", tmp_path, answer)
    assert edited.lower() == TEXT.lower()
    assert sum(sentence.isupper() for sentence in edited.split(".")) == 2


def test_answers_are_asked_for_once(tmp_path: Path) -> None:
    asked = list[httpx.Request]()

    def counted(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return answer(request)

    first = edit("back-translation", tmp_path, counted)
    assert edit("back-translation", tmp_path, counted) == first
    assert len(asked) == 4


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

    assert edit("paraphrase", tmp_path, busy_once).lower() == TEXT.lower()
    assert len(waited) == 2
    assert all(0 <= seconds <= 120 for seconds in waited)


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (httpx.Response(401, text="no key"), "401 no key"),
        (httpx.Response(200, text="[" * 100_000), "no JSON"),
        *(
            (httpx.Response(200, json=odd), "without text")
            for odd in ({}, [], {"choices": []}, {"choices": [[]]})
        ),
    ],
)
def test_what_is_no_answer_is_an_error(tmp_path: Path, response: httpx.Response, message: str) -> None:
    with pytest.raises(EndpointError, match=message):
        edit("paraphrase", tmp_path, lambda _: response)
