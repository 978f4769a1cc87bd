"""A language model reads along where that may change the verdict, and its trouble is nobody's."""

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from tests.features.reader.detect.test_model_reader import Handler, asking, honest, honest_reading, serving
from tests.harness.likelihood import detect_likelihood
from tests.unit.detect_service.conftest import HUMAN, Service
from tests.unit.detect_service.served import served
from ttmark.detect_service.features.reader.reads_along import ReaderMetrics, ReadsAlong
from ttmark.detect_service.features.reader.vllm_dialect import vllm_dialect
from ttmark.shared.byte_reading import ByteReading
from ttmark.shared.schemas.detection.detect import CombinedResult
from ttmark.shared.watermark.likelihood.forward_backward import log10_mean
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.nulls import corrected


@asynccontextmanager
async def read_by(service: Service, answer: Callable[..., None], **options: Any) -> AsyncIterator[Any]:
    """The service with a reader that answers so: asks it, and has what the reader was asked."""
    seconds = options.pop("timeout_seconds", 20.0)
    with serving(answer) as server:
        async with asking(server, timeout_seconds=seconds) as client:
            registry = CollectorRegistry()
            reader = ReadsAlong(client, ReaderMetrics(registry), seconds)
            async with served(
                service.backend, service.authenticate, options={"registry": registry}, reader=reader
            ) as http:

                async def ask(text: str, token: str = "full", **fields: Any) -> CombinedResult:
                    body = {"inputs": [{"text": text}], "keys": ["a-one"], **fields}
                    response = await http.post("/v1/detect", json=body, headers=service.headers(token))
                    assert response.status_code == 200, response.text
                    return CombinedResult.model_validate(response.json()["results"][0])

                ask.asked = server.asked  # type: ignore[attr-defined]
                ask.registry = registry  # type: ignore[attr-defined]
                yield ask


async def test_a_text_that_is_found_without_or_far_from_a_mark_is_not_read(service: Service) -> None:
    async with read_by(service, honest) as ask:
        found = await ask(service.marked("a-one", 300))
        other = await ask(HUMAN * 3)
        assert (found.verdict, found.reader) == ("watermarked", "not_needed")
        assert (other.verdict, other.reader) == ("not_detected", "not_needed")
        assert ask.asked == []


async def test_a_text_that_is_left_open_is_read_and_both_steps_share_the_rate(service: Service) -> None:
    text = service.marked("a-one", 40)
    async with read_by(service, honest) as ask:
        never = await ask(text, reader="never")
        read = await ask(text, reader="always")
        assert (never.reader, read.reader) == ("none", "read")
        (body,) = [body for *_, body in ask.asked]
        assert body["texts"] == [text]
        # Ten times the first step's p-value at most, whatever the reader says.
        assert read.log10_p <= never.log10_p + 1.0 + 1e-9
        assert ask.registry.get_sample_value("ttmark_detect_reader_texts_total", {"outcome": "read"}) == 1.0


async def test_a_reading_that_fails_costs_a_share_of_the_rate_and_no_answer(service: Service) -> None:
    text = service.marked("a-one", 60)
    async with read_by(service, lambda handler, _: handler.say("no", status=500)) as ask:
        alone, first = await ask(text, reader="never"), await ask(text, reader="always")
    assert first.reader == "down"
    assert first.log10_p == pytest.approx(min(0.0, alone.log10_p + 1.0), abs=0.3)


async def test_of_several_texts_those_that_the_reader_refuses_are_unread_alone(service: Service) -> None:
    def no_cats(handler: Handler, body: dict[str, Any]) -> None:
        if any("cat" in text for text in body["texts"]):
            handler.say("too long", status=413)
        else:
            honest(handler, body)

    reads = ["one dog", "a cat", "two dogs", "three"]
    with serving(no_cats) as server:
        async with asking(server) as client:
            found = await ReadsAlong(client, ReaderMetrics(CollectorRegistry())).read(reads, "a")
    assert sorted(found) == sorted(["one dog", "two dogs", "three"])


async def test_who_sees_verdicts_alone_learns_nothing_of_reading(service: Service) -> None:
    def slow(handler: Handler, body: dict[str, Any]) -> None:
        time.sleep(0.2)
        handler.say(json.dumps({"readings": [honest_reading(text) for text in body["texts"]]}))

    read, unread = service.marked("a-one", 70), HUMAN[:70]
    async with read_by(service, slow, timeout_seconds=2.0) as ask:
        await ask(read, reader="always")  # how long readings take is known now
        taken = {}
        for text in (read, unread):
            began = time.perf_counter()
            result = await ask(text, token="verdict")
            taken[text] = time.perf_counter() - began
            assert (result.reader, result.log10_e, result.log10_p) == (None, None, None)
    assert abs(taken[read] - taken[unread]) < 0.15
    assert min(taken.values()) > 0.25


async def test_a_reader_that_knows_the_text_by_heart_raises_no_human_text(service: Service) -> None:
    def sure(handler: Handler, body: dict[str, Any]) -> None:
        readings = [honest_reading(text) | {"logprobs": []} for text in body["texts"]]
        for one in readings:
            one["logprobs"] = [0.0] * len(one["ends"])
        handler.say(json.dumps({"readings": readings}))

    async with read_by(service, sure) as ask:
        result = await ask(HUMAN * 4, reader="always")
    assert (result.reader, result.verdict) == ("read", "not_detected")


async def test_only_who_sees_evidence_chooses(service: Service) -> None:
    body = {"inputs": [{"text": HUMAN}], "reader": "always"}
    response = await service.post("/v1/detect", body, "verdict")
    assert response.status_code == 422
    assert "detect:evidence" in response.text


@pytest.mark.long
@pytest.mark.parametrize("count", [20, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_time_does_not_tell_that_a_p_value_was_drawn_for(service: Service, count: int) -> None:
    generator = np.random.default_rng(5)
    taken: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * count):
        near = bool(generator.integers(2))
        text = service.marked("a-one", 44, seed=number) if near else HUMAN[:40] + f"{number:04}"
        body: dict[str, object] = {"inputs": [{"text": text}], "keys": ["a-one"]}
        began = time.perf_counter()
        response = await service.post("/v1/detect", body, "verdict")
        taken[near].append(time.perf_counter() - began)
        assert response.status_code == 200
    drawn, other = np.array(taken[True]), np.array(taken[False])
    area = float((drawn[:, None] > other[None, :]).mean())  # of the curve of a classifier by time
    print(f"{drawn.size} and {other.size} answers: area {area:.3f}")
    # Four standard deviations of an area by chance with 20 answers of each kind, six with 1,000.
    assert abs(area - 0.5) < min(0.4, 2.5 / np.sqrt(count))


async def test_a_text_is_asked_about_in_one_step_after_what_it_continues(service: Service) -> None:
    """At the whole rate: it is what the reading alone gives, and nothing of the first step counts."""
    text, origin = service.marked("a-one", 40), {"prompt": "Go on:", "top_k": 50, "temperature": 0.7}
    async with read_by(service, honest) as ask:
        found = await ask(text, **origin)
        cascade = await ask(text, reader="always")
        (first, _) = [body for *_, body in ask.asked]
    assert first == {"model": "small", "texts": [text], **origin}
    said = honest_reading(text)
    of_bytes = ByteReading.checked(said["starts"], said["ends"], said["logprobs"], 40)
    reading = Reading(of_bytes.log_probs(np.column_stack([np.arange(40), np.arange(1, 41)])))
    key, ids = service.keys["a-one"], service.tokenizer.encode(text)
    each = [
        detect_likelihood(
            key.profile.watermark(),
            version.prf_keys,
            ids,
            rate=1e-5 / len(key.detectable),
            reading=reading,
            secret=service.backend.draw_secret,
        )
        for version in key.detectable
    ]
    smallest = corrected(min(one.log10_p for one in each), len(each))
    assert found.log10_p == pytest.approx(smallest, abs=1e-9)
    assert found.log10_e == pytest.approx(log10_mean(np.concatenate([one.of_keys for one in each])), abs=1e-9)
    assert found.reader == "read"
    assert cascade.log10_p < found.log10_p - 1  # this reader knows nothing of the text

    messages = [{"role": "user", "content": "Go on"}]
    async with read_by(service, honest) as ask:
        await ask("", inputs=[{"text": text}, {"text": text[:30]}], **origin)
        assert [body["texts"] for *_, body in ask.asked] == [[text], [text[:30]]]
        ask.asked.clear()
        await ask(text, messages=messages, chat_template_kwargs={"mood": None, "a": 1})
        ((*_, body),) = ask.asked
        assert (body["messages"], body["chat_template_kwargs"]) == (messages, {"mood": None, "a": 1})


async def test_token_ids_are_read_as_four_bytes_each(service: Service) -> None:
    def evenly(handler: Handler, body: dict[str, Any]) -> None:
        (said,) = body["texts"]
        content, size = b"".join(number.to_bytes(4, "little") for number in ids), 4
        if isinstance(said, str):
            content, size = said.encode(), 1
        ends = list(range(size, len(content) + 1, size))
        read = {"sha256": sha256(content).hexdigest(), "starts": [0, *ends[:-1]], "ends": ends}
        handler.say(json.dumps({"readings": [read | {"logprobs": [-1.0] * len(ids)}]}))

    text = service.marked("a-one", 40)
    ids = service.tokenizer.encode(text)
    async with read_by(service, evenly) as ask:
        expected = await ask(text, temperature=0.7)
        found = await ask("", inputs=[{"token_ids": ids}], temperature=0.7)
    assert (found.reader, found.tokens) == ("read", 40)
    assert (found.log10_p, found.log10_e) == (expected.log10_p, expected.log10_e)


@pytest.mark.parametrize("kind", ["hangs", "fails", "lies", "refuses", "none", "vllm"])
async def test_without_a_reading_after_what_it_continues_there_is_no_answer(
    service: Service, kind: str
) -> None:
    """A text that the first step alone would find."""
    answers: dict[str, Callable[..., None]] = {
        "hangs": lambda handler, _: time.sleep(0.6),
        "fails": lambda handler, _: handler.say("no", status=500),
        "lies": lambda handler, _: handler.say("{}"),
        "refuses": lambda handler, _: handler.say("too long", status=400),
    }
    body = {"inputs": [{"text": service.marked("a-one", 300)}], "keys": ["a-one"], "prompt": "Go on:"}
    with serving(answers.get(kind, honest)) as server:
        dialect = vllm_dialect("small", service.tokenizer, 100) if kind == "vllm" else None
        async with asking(server, dialect, timeout_seconds=0.3) as client:
            registry = CollectorRegistry()
            reader = None if kind == "none" else ReadsAlong(client, ReaderMetrics(registry))
            async with served(
                service.backend, service.authenticate, options={"registry": registry}, reader=reader
            ) as http:
                answer = await http.post("/v1/detect", json=body, headers=service.headers("full"))
        asked = len(server.asked)
    expected = {"refuses": (422, 1), "none": (422, 0), "vllm": (422, 0)}.get(kind, (503, 1))
    assert (answer.status_code, asked) == expected
    why = {"none": "there is no reader", "vllm": "no filters", "refuses": "answered 400"}.get(
        kind, "does not"
    )
    assert why in answer.json()["detail"]
    outcome = {"outcome": "failed" if expected[0] == 503 else "refused"}
    counted = None if kind == "none" else 1.0
    assert registry.get_sample_value("ttmark_detect_reader_texts_total", outcome) == counted


async def test_what_a_text_continues_takes_the_scope_for_evidence_and_goes_with_one_result(service: Service):
    body = {"inputs": [{"text": service.marked("a-one", 60)}], "keys": ["a-one"], "top_p": 0.9}
    assert (await service.post("/v1/detect", body, "verdict")).status_code == 403
    for more in ({"conversation": True}, {"case": True}, {"reader": "never"}):
        refused = await service.post("/v1/detect", body | more)
        assert refused.status_code == 422
        assert "with a prompt or sampling a model reads" in refused.json()["detail"], more
    both = {"prompt": "a", "messages": [{"role": "user", "content": "b"}]}
    assert "not both" in (await service.post("/v1/detect", body | both)).json()["detail"]
    assert (await service.post("/v1/detect/direct", body)).status_code == 422


async def test_an_empty_text_after_a_prompt_is_no_text_to_read(service: Service) -> None:
    async with read_by(service, honest) as ask:
        found = await ask("", prompt="Go on:")
        assert (found.verdict, found.log10_p, found.reader, ask.asked) == ("too_short", 0.0, "none", [])
