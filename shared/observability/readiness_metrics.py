"""Readiness as a metric: which condition keeps a service from taking requests."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector


class ReadinessCollector(Collector):
    """Asks at each scrape; the label's values are the names that the service gives its checks."""

    def __init__(self, checks: Callable[[], Mapping[str, bool]], registry: CollectorRegistry) -> None:
        self._checks = checks
        registry.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The family without its values, so that registering asks nobody."""
        yield self._family()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One value for each condition of /readyz."""
        family = self._family()
        for name, holds in self._checks().items():
            family.add_metric([name], float(holds))
        yield family

    @staticmethod
    def _family() -> GaugeMetricFamily:
        return GaugeMetricFamily(
            "ttmark_ready", "1 for each condition of /readyz that holds.", labels=["check"]
        )
