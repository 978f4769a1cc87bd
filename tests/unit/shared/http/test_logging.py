"""Logs are JSON lines that hold neither secrets nor texts of users."""

import errno
import io
import json
import logging
import os
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import structlog
from opentelemetry.trace import NonRecordingSpan, SpanContext, use_span
from prometheus_client import CollectorRegistry

from ttmark.shared.events import Event, log_event
from ttmark.shared.http import service_errors
from ttmark.shared.observability.logging import REDACTED, configure_logging, redact

CANARY = bytes(range(32))


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    lines = io.StringIO()
    configure_logging("info", lines)
    yield lines
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def _events(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("style", ["openai"], indirect=True)
async def test_a_request_is_one_line_with_route_status_id_and_error(stream, client):
    for path in ("/healthz", "/readyz", "/metrics"):  # not logged
        await client.get(path)
    await client.post("/v1/greet?q=hidden", json={"name": "Ada Lovelace"}, headers={"X-Request-ID": "r-1"})
    await client.get("/v1/keys/k")
    await client.get("/v1/keys/k", headers={"Authorization": "Bearer wrong"})
    event, *refused = [event for event in _events(stream) if event["event"] == "request"]
    assert [event["error_code"] for event in refused] == ["key_not_found", "invalid_api_key"]
    said = {"route": "/v1/greet", "status": 200, "request_id": "r-1", "token_id": "tok-1", "tenant": "acme"}
    assert said.items() <= event.items()
    assert event["duration_ms"] >= 0
    assert not [words for words in ("hidden", "Ada", "Bearer generator") if words in stream.getvalue()]


def test_a_line_of_the_audit_has_what_its_event_has_and_no_empty_fields(stream: io.StringIO) -> None:
    log_event(Event("key.create", key_id="main", version=1))
    (event,) = _events(stream)
    said = {name: event[name] for name in event.keys() - {"timestamp", "level", "logger"}}
    assert said == {"event": "audit", "action": "key.create", "key_id": "main", "version": 1}


@pytest.mark.parametrize("style", ["problem"], indirect=True)
@pytest.mark.parametrize(
    ("path", "logged"),
    [("broken-by-a-stranger", "RuntimeError: \\udfff"), ("panicking", "Panic: a library in Rust")],
)
async def test_every_500_is_in_the_log_and_in_the_metrics(
    stream: io.StringIO, client: httpx.AsyncClient, registry: CollectorRegistry, path: str, logged: str
) -> None:
    response = await client.get(f"/v1/{path}")
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    (event,) = [event for event in _events(stream) if event["event"] == "unhandled_error"]
    assert logged in event["exception"]
    assert event["request_id"] == response.headers["x-request-id"]
    counted = {"route": f"/v1/{path}", "method": "GET", "status": "500"}
    assert registry.get_sample_value("ttmark_http_requests_total", counted) == 1


@pytest.mark.parametrize("style", ["problem"], indirect=True)
async def test_where_no_error_can_be_rendered_a_last_line_of_text_is_logged_and_counted(
    stream: io.StringIO,
    client: httpx.AsyncClient,
    registry: CollectorRegistry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service_errors, "problem_document", lambda *_, **__: 1 / 0)
    response = await client.get("/v1/limited", headers={"X-Request-ID": "r-1"})
    assert (response.status_code, response.headers["x-request-id"]) == (500, "r-1")
    assert response.text.startswith("Something went wrong on our side")
    events = {event["event"]: event for event in _events(stream)}
    assert "ZeroDivisionError" in events["unhandled_error"]["exception"]
    assert events["error_not_rendered"]["request_id"] == events["request"]["request_id"] == "r-1"
    counted = {"route": "/v1/limited", "method": "GET", "status": "500"}
    assert registry.get_sample_value("ttmark_http_requests_total", counted) == 1


@pytest.mark.parametrize("values", [{"number": 2**70}, {"names": {"\ud800": 1}}, {"ratio": float("nan")}])
def test_a_line_is_written_whatever_it_holds(stream: io.StringIO, values: dict[str, Any]) -> None:
    structlog.get_logger().info("odd", **values)
    logging.getLogger("library").warning("odd", extra=values)
    assert [event["event"] for event in _events(stream)] == ["odd", "odd"]


@pytest.mark.parametrize("part", ["a+", "a1.A", "a."])
def test_a_long_value_is_redacted_in_time_that_grows_with_it(part: str) -> None:
    began = time.process_time()
    redact(part * 30_000)
    assert time.process_time() - began < 1  # by the square of its length: 8 to 40


def test_records_of_libraries_become_json_lines_too(stream: io.StringIO) -> None:
    logging.getLogger("some.library").warning("lost %s", "redis://user:pass@host:6379/0")
    (event,) = _events(stream)
    assert event["level"] == "warning"
    assert event["logger"] == "some.library"
    assert event["event"] == f"lost redis://{REDACTED}@host:6379/0"


@pytest.mark.parametrize("name", ["prompt", "text", "prf_key", "Authorization", "token", "secret"])
def test_sensitive_names_are_redacted_at_any_depth(stream: io.StringIO, name: str) -> None:
    structlog.get_logger().info("event", **{name: "canary"}, nested=[{name: {"deep": "canary"}}])
    assert "canary" not in stream.getvalue()


@pytest.mark.parametrize("canary", [CANARY, CANARY.hex(), CANARY.hex().upper()])
def test_what_looks_like_a_key_is_redacted_in_any_value(stream: io.StringIO, canary: object) -> None:
    structlog.get_logger().info("found", value=canary, message=f"it is {canary!s}, really")
    assert CANARY.hex() not in stream.getvalue().lower()
    assert _events(stream)[0]["value"] in (REDACTED, "[32 bytes]")


def test_tokens_and_keys_in_texts_are_redacted_and_ordinary_values_left_alone() -> None:
    sent = redact("sent Authorization: Bearer abc.def-123 twice")
    assert sent == f"sent Authorization: Bearer {REDACTED} twice"
    assert redact("key=xGq1cW5vQmFzZTY0S2V5T2ZUaGlydHlUd29CeXRlczE=") == f"key={REDACTED}"
    event = {"route": "/v1/completions", "n": 3, "share": 0.5, "ok": True, "none": None}
    assert redact(event) == event


def test_events_carry_the_ids_of_the_span_they_happen_in(stream: io.StringIO) -> None:
    span = NonRecordingSpan(SpanContext(trace_id=0xA1, span_id=0xB2, is_remote=False))
    with use_span(span):
        structlog.get_logger().info("inside")
    structlog.get_logger().info("outside")
    inside, outside = _events(stream)
    assert inside["trace_id"] == f"{0xA1:032x}"
    assert inside["span_id"] == f"{0xB2:016x}"
    assert "trace_id" not in outside


@pytest.mark.usefixtures("stream")
def test_a_log_on_a_full_disk_stops_nothing_and_shows_nothing_unredacted(capfd) -> None:
    class Full(io.StringIO):
        def write(self, line: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    configure_logging("info", Full())
    log_event(Event("token.refuse"))
    logging.getLogger("library").warning("password=%s", "hunter2")
    assert capfd.readouterr().err == ""
