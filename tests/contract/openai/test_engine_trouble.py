"""What a client hears when the engine refuses, fails or stalls; only a fake does so on demand."""

from contextlib import suppress
from typing import Any

import httpx
import openai
import pytest

from tests.contract.openai.composed import BODIES
from tests.harness.waiting import eventually
from ttmark.gen_service.decoding.request import SequenceFailed
from ttmark.gen_service.engine.errors import ContextTooLong, Draining, EngineDied, OutOfTime, Overloaded

# What an engine refuses with, and what a client hears, on every route.
TROUBLE = [
    (Overloaded(2.5), 429, "rate_limit_exceeded"),
    (Draining("stopping"), 503, "shutting_down"),
    (OutOfTime("late"), 503, "deadline_exceeded"),
    (SequenceFailed("NaN"), 500, "generation_failed"),
]


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        *TROUBLE,
        (EngineDied("dead"), 503, "unavailable"),
        (ContextTooLong("the cache holds 9 tokens"), 400, "context_length_exceeded"),
        (RuntimeError("secret"), 500, "internal_error"),
    ],
)
def test_a_refusal_is_an_http_error_even_of_a_stream(fake, refusal, status, code, stream, route):
    fake.generator.refusal = refusal
    response = fake.post(route, stream=stream)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert response.headers.get("retry-after") == {429: "3", 503: "1"}.get(status)
    assert "secret" not in response.text


def test_liveness_fails_once_only_a_restart_helps(fake: Any) -> None:
    assert fake.http().get("/healthz").json() == {"status": "ok"}
    fake.generator.alive = False
    answer = fake.http().get("/healthz")
    assert (answer.status_code, answer.json()) == (503, {"status": "dead"})


def refused(fake: Any) -> float:
    """Completions that were refused because the queue was full, by the service's metrics."""
    name = 'ttmark_gen_rejections_total{reason="rate_limit_exceeded"} '
    lines = fake.http().get("/metrics").text.splitlines()
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_a_full_queue_refuses_before_the_prompt_is_read(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = refused(fake)
    fake.generator.refusal = Overloaded(1)
    monkeypatch.setattr(fake.generator, "tokenizer", None)
    assert [fake.post(route).status_code for route in BODIES] == [429] * 3
    assert refused(fake) == before + 3


ENDS_MIDWAY = pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (SequenceFailed("secret"), 500, "generation_failed"),
        (RuntimeError("secret"), 500, "internal_error"),
        (Draining("secret"), 503, "shutting_down"),
        (OutOfTime("secret"), 503, "deadline_exceeded"),
        (EngineDied("secret"), 503, "unavailable"),
    ],
)


@ENDS_MIDWAY
def test_a_failure_after_the_first_chunk_ends_the_stream_with_an_error_event(fake, failure, status, code):
    fake.generator.failure = failure
    stream = fake.client().completions.create(model="tiny", prompt="Once", stream=True)
    with pytest.raises(openai.APIError) as raised:
        list(stream)
    assert raised.value.code == code
    assert "secret" not in str(raised.value)


@ENDS_MIDWAY
def test_a_completion_that_the_engine_cannot_finish_says_whether_to_try_again(fake, failure, status, code):
    fake.generator.failure = failure
    response = fake.post("completions", n=2)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert response.headers.get("retry-after") == ("1" if status == 503 else None)
    assert "secret" not in response.text
    assert fake.generator.running == 0


def test_a_model_that_is_not_ready_is_a_503(fake: Any) -> None:
    fake.generator.ready = False
    response = fake.post("completions")
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "not_ready"
    assert fake.http().get("/readyz").json()["checks"] == {"models": False, "keys": True, "default_key": True}


def test_a_silent_stream_is_kept_open_by_comments(fake: Any) -> None:
    fake.generator.pause = 0.7
    response = fake.post("completions", tokens=2, stream=True)
    lines = [line for line in response.text.splitlines() if line]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert lines.count(": keep-alive") >= 1
    assert lines[-1] == "data: [DONE]"


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize(("pause", "stream"), [(0.1, False), (0.1, True), (60.0, True)])
def test_a_client_that_leaves_cancels_its_completions(fake, route, pause, stream):
    """While it waits for an answer, in the middle of a stream, and before a stream has begun."""
    fake.generator.pause = pause
    choices = {} if route == "responses" else {"n": 3}
    body = {"model": "tiny", "stream": stream} | BODIES[route] | choices
    with (
        suppress(httpx.ReadTimeout),
        fake.http().stream("POST", f"/v1/{route}", json=body, timeout=0.25) as answer,
    ):
        next(answer.iter_raw())
    eventually(lambda: fake.generator.cancelled >= choices.get("n", 1))
    assert fake.generator.running == 0


def test_metrics_count_completions_tokens_and_watermarks(fake: Any) -> None:
    def value(name: str, **labels: str) -> float:
        return fake.registry.get_sample_value(f"ttmark_gen_{name}", labels) or 0.0

    before = [value("completions_total", outcome="length"), value("tokens_total", kind="completion")]
    marked = value("watermarks_total", status="watermarked")
    fake.post("completions", n=2)
    assert value("completions_total", outcome="length") == before[0] + 2
    assert value("tokens_total", kind="completion") == before[1] + 32
    assert value("watermarks_total", status="watermarked") == marked + 1
    assert value("blocks_total", outcome="warm_up") >= 2
