"""OpenTelemetry tracing, off unless a composition root makes a provider and hands it to the application."""

import re
import uuid
from typing import Any

import structlog
from opentelemetry import trace
from opentelemetry.trace import Span, Tracer, TracerProvider
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import EventDict, WrappedLogger


class TracingUnavailable(Exception):
    """The libraries that export traces are not installed."""


class WithoutQueries(TracerProvider):
    """Another provider whose spans do not hold query strings: our routes take none, and somebody may send a
    token there."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider

    def get_tracer(self, *args: Any, **kwargs: Any) -> Tracer:
        """A tracer of the other provider, wrapped."""
        return _WithoutQueries(self._provider.get_tracer(*args, **kwargs))


class _WithoutQueries(Tracer):
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def start_span(self, name: str, *args: Any, **kwargs: Any) -> Span:
        return self._tracer.start_span(name, *args, **_without_query(kwargs))

    def start_as_current_span(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._tracer.start_as_current_span(name, *args, **_without_query(kwargs))


def _without_query(options: dict[str, Any]) -> dict[str, Any]:
    attributes = options.get("attributes") or {}
    kept = {name: value for name, value in attributes.items() if name != "url.query"}
    return {**options, "attributes": kept}


def otlp_tracer_provider(endpoint: str, *, service: str, version: str) -> TracerProvider:
    """A provider that sends spans to an OTLP collector over HTTP, in batches in the background.

    Args:
        endpoint: URL of the collector's trace route, such as `http://collector:4318/v1/traces`.

    Raises:
        TracingUnavailable: the extra `tracing` is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise TracingUnavailable("tracing needs the extra: pip install ttmark[tracing]") from error
    resource = Resource.create({"service.name": service, "service.version": version})
    provider = SdkTracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return provider


def add_trace_ids(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The structlog processor that joins log events to the span they happen in."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event


HEADER = "X-Request-ID"
_HARMLESS = re.compile(r"(?!req-)[A-Za-z0-9._:-]{1,128}")  # what begins so is always our word


class RequestIdMiddleware:
    """Puts `request_id` into the scope's state, the log context and the response headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        offered = Headers(scope=scope).get(HEADER, "")
        identifier = offered if _HARMLESS.fullmatch(offered) else f"req-{uuid.uuid4().hex}"
        scope.setdefault("state", {})["request_id"] = identifier

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = identifier
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=identifier):
            await self.app(scope, receive, send_with_id)


def request_id(scope: Scope) -> str:
    return str(scope["state"]["request_id"])
