"""OpenTelemetry tracing, off unless a composition root makes a provider and hands it to the application."""

from typing import Any

from opentelemetry.trace import Span, Tracer, TracerProvider


class TracingUnavailable(Exception):
    """The libraries that export traces are not installed."""


class WithoutQueries(TracerProvider):
    """Another provider whose spans do not hold query strings: our routes take none, and somebody may send a
    token there."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider

    def get_tracer(self, *args: Any, **kwargs: Any) -> Tracer:
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
