"""Tracing: a span for each request and each completion, joined to the caller's, without what was written."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from tests.harness.waiting import eventually
from ttmark.gen_service.decoding.request import SequenceFailed

REQUEST = {"model": "tiny", "prompt": "confidential prompt", "max_tokens": 4}
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CALLER = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}


@pytest.fixture
def spans(traced: Any, exporter: Any) -> Iterator[Any]:
    """Finished spans by name, as soon as there are so many."""
    exporter.clear()

    def finished(count: int) -> dict[str, list[Any]]:
        eventually(lambda: len(exporter.get_finished_spans()) >= count)
        by_name: dict[str, list[Any]] = {}
        for span in exporter.get_finished_spans():
            by_name.setdefault(span.name, []).append(span)
        return by_name

    return finished


@pytest.mark.parametrize("stream", [False, True])
def test_completions_are_spans_under_their_request_in_the_callers_trace(traced, spans, stream):
    traced.http().post("/v1/completions", json=REQUEST | {"n": 2, "stream": stream}, headers=CALLER)
    by_name = spans(3)
    (request,) = by_name["POST /v1/completions"]
    assert request.kind is SpanKind.SERVER
    assert f"{request.context.trace_id:032x}" == TRACE_ID
    assert f"{request.parent.span_id:016x}" == "b7ad6b7169203331"
    assert request.attributes["http.response.status_code"] == 200
    for completion in by_name["generate"]:
        assert completion.parent.span_id == request.context.span_id
        assert completion.attributes["gen_ai.usage.output_tokens"] == 4
        assert completion.attributes["gen_ai.operation.name"] == "text_completion"
        assert completion.attributes["gen_ai.provider.name"] == "ttmark"
        assert completion.attributes["ttmark.outcome"] == "length"
        assert completion.attributes["ttmark.watermarked"] is True
        assert [event.name for event in completion.events] == ["first_token"]


def test_spans_hold_neither_texts_nor_tokens(traced: Any, spans: Any) -> None:
    traced.http().post("/v1/completions", json=REQUEST)
    text = "".join(span.to_json() for group in spans(2).values() for span in group)
    assert "confidential" not in text
    assert "author" not in text


def test_a_completion_that_fails_is_a_failed_span(traced: Any, spans: Any) -> None:
    traced.generator.failure = SequenceFailed("confidential")
    traced.http().post("/v1/completions", json=REQUEST)
    (completion,) = spans(2)["generate"]
    assert completion.status.status_code is StatusCode.ERROR
    assert completion.attributes["ttmark.outcome"] == "failed"
    assert "confidential" not in completion.to_json()


def test_probes_are_not_traced(traced: Any, spans: Any) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        traced.http().get(path)
    traced.http().get("/v1/models")
    assert list(spans(1)) == ["GET /v1/models"]
