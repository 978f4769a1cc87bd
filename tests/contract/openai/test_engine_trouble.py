"""What a client hears when the engine refuses, fails or stalls; only a fake does so on demand."""

import time
from typing import Any

import openai
import pytest

from ttmark.gen_service.engine import (
    ContextTooLong,
    Draining,
    EngineDied,
    OutOfTime,
    Overloaded,
    SequenceFailed,
)

CHAT = [{"role": "user", "content": "Once"}]
REQUEST = {"model": "tiny", "prompt": "Once", "max_tokens": 16}


# What an engine refuses with, and what a client hears, on every route.
TROUBLE = [
    (Overloaded(2.5), 429, "rate_limit_exceeded"),
    (Draining("stopping"), 503, "shutting_down"),
    (OutOfTime("late"), 503, "deadline_exceeded"),
    (SequenceFailed("NaN"), 500, "generation_failed"),
]


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
def test_a_refusal_is_an_http_error_even_of_a_stream(fake, refusal, status, code, stream):
    fake.generator.refusal = refusal
    response = fake.http().post("/v1/completions", json=REQUEST | {"stream": stream})
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
    for path, prompt in (
        ("completions", {"prompt": "x" * 100}),
        ("chat/completions", {"messages": CHAT}),
        ("responses", {"input": CHAT}),
    ):
        assert fake.http().post(f"/v1/{path}", json={"model": "tiny"} | prompt).status_code == 429
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
    stream = fake.client().completions.create(**REQUEST, stream=True)
    with pytest.raises(openai.APIError) as raised:
        list(stream)
    assert raised.value.code == code
    assert "secret" not in str(raised.value)


@ENDS_MIDWAY
def test_a_completion_that_the_engine_cannot_finish_says_whether_to_try_again(fake, failure, status, code):
    fake.generator.failure = failure
    response = fake.http().post("/v1/completions", json=REQUEST | {"n": 2})
    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert response.headers.get("retry-after") == ("1" if status == 503 else None)
    assert "secret" not in response.text
    assert fake.generator.running == 0


def test_a_model_that_is_not_ready_is_a_503(fake: Any) -> None:
    fake.generator.ready = False
    response = fake.http().post("/v1/completions", json=REQUEST)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "not_ready"
    assert fake.http().get("/readyz").json()["checks"] == {"models": False, "keys": True, "default_key": True}


def test_a_silent_stream_is_kept_open_by_comments(fake: Any) -> None:
    fake.generator.pause = 0.7
    with fake.http().stream("POST", "/v1/completions", json=REQUEST | {"max_tokens": 2, "stream": True}) as r:
        lines = [line for line in r.iter_lines() if line]
    assert r.headers["content-type"].startswith("text/event-stream")
    assert lines.count(": keep-alive") >= 1
    assert lines[-1] == "data: [DONE]"


def test_a_client_that_gives_up_waiting_cancels_its_completions(fake: Any) -> None:
    fake.generator.pause = 0.1
    with pytest.raises(openai.APITimeoutError):
        fake.client().with_options(timeout=0.25).completions.create(**REQUEST, n=3)
    _wait_for_cancellations(fake, 3)


def test_a_client_that_closes_its_stream_cancels_its_completions(fake: Any) -> None:
    fake.generator.pause = 0.1
    stream = fake.client().completions.create(**REQUEST, n=3, stream=True)
    next(iter(stream))
    stream.close()
    _wait_for_cancellations(fake, 3)


def test_a_client_that_leaves_while_its_completion_waits_cancels_it(fake: Any) -> None:
    fake.generator.pause = 60
    with pytest.raises(openai.APITimeoutError):
        fake.client().with_options(timeout=0.1).completions.create(**REQUEST, stream=True)
    _wait_for_cancellations(fake, 1)


def _wait_for_cancellations(fake: Any, count: int) -> None:
    deadline = time.monotonic() + 5
    while fake.generator.cancelled < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert fake.generator.running == 0


def test_metrics_count_completions_tokens_and_watermarks(fake: Any) -> None:
    def value(name: str, **labels: str) -> float:
        return fake.registry.get_sample_value(f"ttmark_gen_{name}", labels) or 0.0

    before = [value("completions_total", outcome="length"), value("tokens_total", kind="completion")]
    marked = value("watermarks_total", status="watermarked")
    fake.http().post("/v1/completions", json=REQUEST | {"n": 2})
    assert value("completions_total", outcome="length") == before[0] + 2
    assert value("tokens_total", kind="completion") == before[1] + 32
    assert value("watermarks_total", status="watermarked") == marked + 1
    assert value("time_to_first_token_seconds_count") >= 2
    assert value("blocks_total", outcome="warm_up") >= 2
