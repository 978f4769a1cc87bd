"""Logs are JSON lines that hold neither secrets nor texts of users."""

import errno
import io
import json
import logging
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import structlog
from opentelemetry.trace import NonRecordingSpan, SpanContext, use_span
from prometheus_client import CollectorRegistry

from ttmark.shared.observability.logging import REDACTED, configure_logging, redact
from ttmark.shared.vault.audit_events import AuditEvent, log_audit

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
    log_audit(AuditEvent("key.create", key_id="main", version=1))
    (event,) = _events(stream)
    said = {name: event[name] for name in event.keys() - {"timestamp", "level", "logger"}}
    assert said == {"event": "audit", "action": "key.create", "key_id": "main", "version": 1}


@pytest.mark.parametrize("style", ["openai"], indirect=True)
async def test_an_unforeseen_exception_is_logged_with_its_trace_and_request_id(stream, client):
    response = await client.get("/v1/broken")
    (event,) = [event for event in _events(stream) if event["event"] == "unhandled_error"]
    assert "RuntimeError" in event["exception"]
    assert event["level"] == "error"
    assert event["request_id"] == response.headers["x-request-id"]


@pytest.mark.parametrize("style", ["problem"], indirect=True)
async def test_a_lone_surrogate_in_an_exception_keeps_it_neither_from_the_log_nor_from_the_metrics(
    stream: io.StringIO, client: httpx.AsyncClient, registry: CollectorRegistry
) -> None:
    response = await client.get("/v1/broken-by-a-stranger")
    assert response.json()["code"] == "internal_error"
    (event,) = [event for event in _events(stream) if event["event"] == "unhandled_error"]
    assert event["exception"].endswith("RuntimeError: \\udfff")
    counted = {"route": "/v1/broken-by-a-stranger", "method": "GET", "status": "500"}
    assert registry.get_sample_value("ttmark_http_requests_total", counted) == 1


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
    log_audit(AuditEvent("token.refuse"))
    logging.getLogger("library").warning("password=%s", "hunter2")
    assert capfd.readouterr().err == ""
