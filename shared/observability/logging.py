"""JSON logs, one object per line, for our own events and for those of libraries, without secrets or texts."""

import json
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any, TextIO

import orjson
import structlog
from opentelemetry import trace
from structlog.typing import EventDict, Processor, WrappedLogger

REDACTED = "[redacted]"
_SENSITIVE_NAMES = frozenset(
    {
        "access_token",
        "api_key",
        "authorization",
        "body",
        "completion",
        "content",
        "cookie",
        "headers",
        "kek",
        "messages",
        "password",
        "plain",
        "prf_key",
        "prf_keys",
        "prompt",
        "secret",
        "text",
        "token",
        "wrapped_secret",
    }
)
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=:-]+"), rf"\1 {REDACTED}"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+]{0,31}://)[^/\s@]*@"), rf"\1{REDACTED}@"),
    (re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{32,}(?![0-9A-Za-z])"), REDACTED),
    # 32 bytes in base64: 43 or 44 digits of which some are capitals, small letters and figures. No part looks
    # further than the digits go: a long value would hold everybody up.
    (
        re.compile(
            r"(?<![\w/+-])(?=[\w/+-]*\d)(?=[\w/+-]*[a-z])(?=[\w/+-]*[A-Z])[\w/+-]{43,44}={0,1}(?![\w/+=-])"
        ),
        REDACTED,
    ),
)
_LONGEST_VALUE = 16_384
# A word without white space, "@" and "=" that is too short for a key: no pattern can match.
_HARMLESS = re.compile(r"[\w./:+-]{0,31}", re.ASCII)


def redact(value: Any, name: str = "") -> Any:
    """`value` as it may be logged under `name`: by name, by type (bytes), and by what strings look like."""
    if name.lower() in _SENSITIVE_NAMES:
        return REDACTED
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {str(key): redact(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact_text(str(value))


def redact_text(text: str) -> str:
    """`text` without credentials in headers, in URLs, and without anything that looks like a key."""
    if _HARMLESS.fullmatch(text):
        return text
    text = text.encode(errors="backslashreplace").decode()  # a lone surrogate has no form in UTF-8
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"


_KEPT_AS_THEY_ARE = frozenset({"timestamp", "level", "logger", "request_id", "trace_id", "span_id", "job_id"})


def configure_logging(level: str = "info", stream: TextIO | None = None) -> None:
    """Sends structlog's events and the standard library's records to `stream` (stderr) as redacted JSON."""
    rendering: list[Processor] = [redact_event, structlog.processors.JSONRenderer(serializer=_dumps)]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_shared_processors(),
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
    )
    handler = _LineHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = name != "uvicorn.access"  # our own access log has the request id and no query
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs whole URLs
    # Our own events go past the standard library, whose records would cost a request more than its metrics.
    structlog.configure(
        processors=[*_shared_processors(), *rendering],
        logger_factory=lambda name="": _LineLogger(handler.stream, name),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )


class _LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines; one that finds no room is lost."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Says nothing: the standard library would show the record as it is, with what may be a secret."""


class _LineLogger(structlog.WriteLogger):
    """Writes lines; one that finds no room is lost. `add_logger_name` looks for the name."""

    def __init__(self, stream: TextIO, name: str) -> None:
        super().__init__(stream)
        self.name = name

    def msg(self, message: str) -> None:
        with suppress(OSError):
            super().msg(message)

    debug = info = warning = error = critical = msg


def add_trace_ids(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The structlog processor that joins log events to the span they happen in."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event


def redact_event(_: WrappedLogger, __: str, event: EventDict) -> MutableMapping[str, Any]:
    """The structlog processor that applies `redact` to every value of an event."""
    return {
        name: value if name in _KEPT_AS_THEY_ARE else redact(value, name) for name, value in event.items()
    }


def _shared_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        add_trace_ids,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]


def _dumps(event: EventDict, **_: Any) -> str:
    try:
        return orjson.dumps(event, default=str).decode()
    except TypeError:  # a number of more than 64 bits, or a lone surrogate in a name
        return json.dumps(event, default=str)
