"""A gauge that is read when somebody asks for the metrics."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge


def watch_gauge(registry: CollectorRegistry, name: str, text: str, read: Callable[[], float]) -> None:
    Gauge(name, text, registry=registry).set_function(read)
