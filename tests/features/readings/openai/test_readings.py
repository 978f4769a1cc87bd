"""`POST /v1/readings`: what it says of texts, scope, limits, errors, and what a client that leaves ends."""

import asyncio
import hashlib
from dataclasses import replace
from itertools import pairwise
from typing import Any

import httpx
import numpy as np
import pytest

from tests.contract.openai.composed import build_service
from tests.contract.openai.test_engine_trouble import TROUBLE
from tests.harness.waiting import eventually
from ttmark.detect_service.features.reader.dialect import ReaderDown, ttmark_dialect
from ttmark.detect_service.features.reader.reader_client import ReaderClient
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.decoding.request import ReadingRequest, SequenceFailed
from ttmark.shared.byte_reading import ByteReading
from ttmark.shared.events import Event
from ttmark.shared.http.service_errors import TooManyRequests

PATH = "/v1/readings"
TEXTS = ["It was a dark and stormy night.", "Ça coûte 3 €, 漢字 😀", " x"]


def post(service: Any, token: str = "reader", **change: Any) -> httpx.Response:
    return service.post("readings", token, **{"texts": TEXTS} | change)


def test_every_text_is_read_in_parts_that_are_together_its_bytes(service: Any) -> None:
    answer = post(service).json()
    assert (answer["model"], len(answer["readings"])) == ("tiny", len(TEXTS))
    assert answer["tokens"] == sum(map(service.tokens, TEXTS))
    for text, reading in zip(TEXTS, answer["readings"], strict=True):
        content = text.encode()
        assert reading["sha256"] == hashlib.sha256(content).hexdigest()
        spans = list(zip(reading["starts"], reading["ends"], strict=True))
        assert all(first[1] == second[0] for first, second in pairwise(spans))
        found = ByteReading.checked(reading["starts"], reading["ends"], reading["logprobs"], len(content))
        assert len(found.ends) <= service.tokens(text)
        assert found.logprobs.max() < 0


def test_a_reading_is_what_the_engine_says_of_the_tokens_after_the_one_that_begins_a_text(real: Any) -> None:
    generator, (text, *_) = real.generator, TEXTS
    ids = tuple(generator.tokenizer.encode(text))
    request = ReadingRequest("id", (generator.start_token_id,), ids, FilterParams(), "acme")
    expected = asyncio.run(generator.read(request))
    (reading,) = post(real, texts=[text]).json()["readings"]
    np.testing.assert_allclose(reading["logprobs"], expected, rtol=1e-6)


def test_a_text_is_read_after_what_it_continues_at_the_sampling_that_is_named(real: Any) -> None:
    generator, (text, *_) = real.generator, TEXTS
    ids, before = tuple(generator.tokenizer.encode(text)), tuple(generator.tokenizer.encode("Once"))
    sampling = {"temperature": 0.7, "top_k": 40, "top_p": 0.9, "min_p": 0.01}
    request = ReadingRequest("id", before, ids, FilterParams(**sampling), "acme", 1.2)
    expected = np.maximum(asyncio.run(generator.read(request)), -9999)
    asked = {**sampling, "prompt": "Once", "repetition_penalty": 1.2}
    of_text, of_ids = post(real, texts=[text, list(ids)], **asked).json()["readings"]
    assert -9999 in expected
    np.testing.assert_allclose(of_text["logprobs"], expected, rtol=1e-6)
    np.testing.assert_allclose(of_ids["logprobs"], expected, rtol=1e-6)
    assert of_ids["ends"] == [4 * number for number in range(1, len(ids) + 1)]
    content = b"".join(number.to_bytes(4, "little") for number in ids)
    assert of_ids["sha256"] == hashlib.sha256(content).hexdigest()


def test_what_is_not_named_of_the_sampling_is_the_model_s_own_once_anything_is(fake: Any) -> None:
    tempered = FilterParams(temperature=0.6, top_p=0.8, top_k=20, min_p=0.1)
    talk = [{"role": "user", "content": "Go on"}]
    for asked in ({}, {"messages": talk}, {"prompt": "a"}, {"top_k": -1}):
        post(fake, texts=["abc"], model="tempered", **asked)
    plain, chat, prompt, named = fake.generator.readings
    assert (plain.filters, plain.repetition_penalty) == (FilterParams(), 1.0)
    assert {(one.filters, one.repetition_penalty) for one in (chat, prompt)} == {(tempered, 1.2)}
    assert (named.filters, named.repetition_penalty) == (replace(tempered, top_k=0), 1.2)
    start, a = (fake.generator.start_token_id,), tuple(fake.generator.tokenizer.encode("a"))
    assert [one.prompt_ids for one in (plain, prompt, named)] == [start, a, start]
    assert fake.generator.tokenizer.decode(chat.prompt_ids) == "<user>Go on\n<assistant>"


def test_with_a_prompt_a_text_is_read_in_one_or_not_at_all(fake: Any) -> None:
    """And what it continues counts with each text."""
    prompt, most = "p" * 56, fake.generator.context_length - 56
    answer = post(fake, texts=["a" * most, "b"], prompt=prompt)
    assert answer.json()["tokens"] == most + 1 + 2 * 56
    assert [len(one.text_ids) for one in fake.generator.readings] == [most, 1]
    refused = post(fake, texts=["b", "a" * (most + 1)], prompt=prompt).json()["error"]
    assert (refused["code"], refused["param"]) == ("context_length_exceeded", "texts[1]")
    assert "what it continues 56, together 1 token over" in refused["message"]


def test_a_text_reads_the_same_alone_and_beside_others(real: Any) -> None:
    together = post(real).json()["readings"]
    for text, expected in zip(TEXTS, together, strict=True):
        (alone,) = post(real, texts=[text]).json()["readings"]
        assert alone["ends"] == expected["ends"]
        np.testing.assert_allclose(alone["logprobs"], expected["logprobs"], atol=1e-4)


def test_a_text_longer_than_the_context_is_read_in_windows(real: Any) -> None:
    text = "the quick brown fox jumps over the lazy dog and " * 30
    generator = real.generator
    assert real.tokens(text) > 2 * generator.context_length
    (reading,) = post(real, texts=[text]).json()["readings"]
    found = ByteReading.checked(reading["starts"], reading["ends"], reading["logprobs"], len(text))
    assert len(found.ends) == real.tokens(text)
    size = generator.context_length - 1
    second = tuple(generator.tokenizer.encode(text))[size - size // 4 :][:size]
    request = ReadingRequest("id", (generator.start_token_id,), second, FilterParams(), "acme")
    expected = asyncio.run(generator.read(request))[size // 4 :]
    np.testing.assert_allclose(found.logprobs[size:][: len(expected)], expected, atol=1e-4)


def test_without_a_token_that_begins_a_text_nothing_is_said_of_the_first_part(fake, monkeypatch):
    monkeypatch.setattr(fake.generator, "start_token_id", None)
    readings = post(fake, texts=["abc", "a"]).json()["readings"]
    assert [reading["logprobs"] for reading in readings] == [
        [None, pytest.approx(-np.log(2)), pytest.approx(-np.log(2))],
        [None],
    ]
    assert [request.prompt_ids for request in fake.generator.readings] == [()]


async def test_the_detection_service_s_client_gets_the_readings(real: Any) -> None:
    long = "the quick brown fox jumps over the lazy dog and " * 30
    client = ReaderClient(real.url, ttmark_dialect("tiny"), token="reader", timeout_seconds=20)
    readings = await client.read([*TEXTS, long])
    stranger = ReaderClient(real.url, ttmark_dialect("tiny"), token="author")
    with pytest.raises(ReaderDown):
        await stranger.read(TEXTS)
    for each in (client, stranger):
        await each.aclose()
    said = post(real, texts=[*TEXTS, long]).json()["readings"]
    for text, reading, expected in zip([*TEXTS, long], readings, said, strict=True):
        size = len(text.encode())
        assert reading.ends.tolist() == expected["ends"]
        bits = reading.surprise(np.array([[0, size]]))[0]
        assert bits == pytest.approx(-sum(expected["logprobs"]) / np.log(2), rel=1e-4)


def test_the_scope_opens_nothing_else(fake: Any) -> None:
    assert fake.post("completions", "reader").status_code == 403
    assert fake.post("chat/completions", "reader").status_code == 403


@pytest.mark.parametrize(
    ("change", "status", "param"),
    [
        ({"texts": [""]}, 400, "texts[0]"),
        ({"texts": "a"}, 400, "texts"),
        ({"texts": ["a", []]}, 400, "texts[1]"),
        ({"texts": ["a", [1, 9999]]}, 400, "texts[1]"),
        ({"promt": "a"}, 400, "promt"),
        ({"prompt": [9999]}, 400, "prompt"),
        ({"prompt": "a", "messages": [{"role": "user", "content": "b"}]}, 400, None),
        ({"temperature": 0}, 400, "temperature"),
        ({"model": "untold", "messages": [{"role": "user", "content": "b"}]}, 400, "messages"),
        ({"model": "none"}, 404, "model"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(fake, change, status, param):
    answer = post(fake, **change)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param), answer.text


def test_more_tokens_than_a_request_may_have_read_are_refused(serve, fake):
    service = serve(build_service(fake.generator, max_read_tokens=100))
    assert post(service, texts=["a" * 100]).status_code == 200
    answer = post(service, texts=["a" * 50, "b" * 51])
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_much_work")
    assert "101 tokens together; the limit is 100" in answer.json()["error"]["message"]


def test_the_first_failure_ends_what_else_was_asked(fake: Any) -> None:
    fake.generator.failure = SequenceFailed("NaN")
    assert post(fake, texts=["abc"] * 20).status_code == 500
    assert fake.generator.running == 0
    assert len(fake.generator.readings) < 20


def test_the_audit_trail_says_who_had_how_much_read_and_metrics_count_it(fake: Any) -> None:
    def counted(name: str, **labels: str) -> float:
        return float(fake.registry.get_sample_value(name, labels) or 0)

    texts, tokens = counted("ttmark_gen_readings_total", outcome="read"), sum(map(fake.tokens, TEXTS))
    before = counted("ttmark_gen_tokens_total", kind="read")
    answer = post(fake).json()
    (event,) = fake.audit
    told = {"token_id": "tok-reader", "tenant": "acme", "request_id": answer["request_id"], "route": PATH}
    assert event == Event("text.read", **told, tokens=tokens)
    assert counted("ttmark_gen_readings_total", outcome="read") == texts + len(TEXTS)
    assert counted("ttmark_gen_tokens_total", kind="read") == before + tokens


@pytest.mark.parametrize("token", ["author", "keyless", "detector"])
def test_without_the_scope_nothing_is_said(fake: Any, token: str) -> None:
    answer = post(fake, token)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "insufficient_scope")


@pytest.mark.parametrize(("trouble", "status", "code"), TROUBLE)
def test_trouble_of_the_engine_is_an_http_error(fake, trouble, status, code):
    fake.generator.refusal = trouble
    outcome = {"outcome": "failed" if status >= 500 else "rejected"}
    before = fake.registry.get_sample_value("ttmark_gen_readings_total", outcome) or 0
    answer = post(fake, texts=["abc"] * 9)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert fake.audit == []
    assert fake.registry.get_sample_value("ttmark_gen_readings_total", outcome) == before + 9


def test_a_client_that_leaves_ends_the_readings(fake: Any) -> None:
    fake.generator.pause = 60.0
    with pytest.raises(httpx.ReadTimeout):
        fake.http("reader").post("/v1/readings", json={"model": "tiny", "texts": ["abc"] * 9}, timeout=0.5)
    eventually(lambda: (fake.generator.cancelled, fake.generator.running) == (4, 0))


async def test_an_allowance_is_asked_for_all_that_is_read_with_what_stands_before(fake: Any) -> None:
    taken: list[int] = []

    class Allowance:
        async def take(self, _: object, tokens: int) -> None:
            taken.append(tokens)
            if len(taken) > 1:
                raise TooManyRequests("too many", retry_after=1)

    transport = httpx.ASGITransport(build_service(fake.generator, allowance=Allowance()).app)
    headers = {"Authorization": "Bearer reader"}
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
        asked = {"model": "tiny", "texts": ["abc", "de"], "prompt": [1, 2, 3]}
        answers = [await client.post("/v1/readings", json=asked) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert taken == [5 + 2 * 3] * 2
    assert len(fake.generator.readings) == 2
