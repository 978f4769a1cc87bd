"""Prometheus metrics of the HTTP layer, the same in both services."""

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

_LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class HttpMetrics:
    """Requests by route template, method and status; latency; requests in flight; build info."""

    def __init__(self, registry: CollectorRegistry, version: str) -> None:
        self._requests = Counter(
            "ttmark_http_requests",
            "HTTP requests answered.",
            ["route", "method", "status"],
            registry=registry,
        )
        self._latency = Histogram(
            "ttmark_http_request_duration_seconds",
            "Time from the request's head to the end of its response.",
            ["route", "method"],
            buckets=_LATENCY_BUCKETS,
            registry=registry,
        )
        self.in_flight = Gauge(
            "ttmark_http_requests_in_flight", "HTTP requests being answered.", registry=registry
        )
        build = Info("ttmark_build", "What is running.", registry=registry)
        build.info({"version": version, "python": platform.python_version()})

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        """Records one answered request; `route` is a template, never a path from a client."""
        self._requests.labels(route, method, str(status)).inc()
        self._latency.labels(route, method).observe(seconds)
