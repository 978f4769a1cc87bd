"""Prometheus metrics of the limits on access tokens."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from ttmark.shared.limits.row_space import REASONS

# Of the token, by what is counted; why documents get no verdict; and of public questions.
PUBLIC_LIMITS = ("address", "words")
LIMITS = ("requests", "tokens", "documents", *REASONS, *PUBLIC_LIMITS)


class LimitMetrics:
    """Refusals by limit, and whether all replicas count together."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refusals = Counter(
            "ttmark_limit_refusals",
            "Requests, and documents of requests, refused because a limit of their access token was reached.",
            ["limit"],
            registry=registry,
        )
        self._shared = Gauge(
            "ttmark_limit_counters_shared",
            "1 while limits are counted over all replicas, 0 while each counts for itself.",
            registry=registry,
        )
        for limit in LIMITS:
            self._refusals.labels(limit)

    def refused(self, limit: str) -> None:
        """A request was refused; `limit` is one of LIMITS."""
        self._refusals.labels(limit).inc()

    def watch(self, shared: Callable[[], bool]) -> None:
        """Reads at each scrape whether the counters are shared."""
        self._shared.set_function(lambda: float(shared()))
