"""docs/metrics.md, from the metrics that the services register."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from shared.keys.unlocked import UnlockedKey
from shared.observability.canary_metrics import CanaryMetrics
from shared.observability.detection_metrics import DetectionMetrics
from shared.observability.engine_metrics import EngineMetrics
from shared.observability.generation_metrics import GenerationMetrics
from shared.observability.http_metrics import HttpMetrics
from shared.observability.key_metrics import watch_keys
from shared.observability.limit_metrics import LIMITS, LimitMetrics
from shared.observability.readiness_metrics import ReadinessCollector

HEADER = """\
# Metrics

What `/metrics` of both services and of the live check shows; `python -m deploy.reference` writes this page.
Times are in seconds, sizes in tokens or bytes; a counter's name ends in `_total`, a histogram has `_bucket`,
`_sum` and `_count`. Beside these there are the usual `process_*` metrics (CPU, memory, open files, start).
"""

# Where the values of a label come from; none of them is written by a client.
LABELS = {
    "check": "conditions of `/readyz`",
    "kind": "`prefill`, `probe`, `commit`; of tokens `prompt`, `completion`",
    "limit": ", ".join(f"`{limit}`" for limit in LIMITS),
    "method": "HTTP methods; anything else is `other`",
    "mode": "`direct`, `aligned`, `localized`",
    "model": "names of the served models, set by the operator",
    "outcome": "how something ended, a fixed list in the code; anything else is `other`",
    "part": "`forward`, `reweight`, `other`",
    "python": "one",
    "reason": "codes of errors, a fixed list in the code",
    "route": "route templates; anything else is `unmatched`",
    "state": "`running`, `waiting`; of key versions their five states",
    "status": "HTTP status, or the three states of a response's watermark",
    "step": "`generate`, `detect`",
    "text": "`generated`, `human`",
    "verdict": "`watermarked`, `not_detected`, `too_short`",
    "version": "one",
}


@dataclass(frozen=True)
class Metric:
    """One metric as it is exposed."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str


def metrics_of(registry: CollectorRegistry) -> list[Metric]:
    """What is registered, by name."""
    return sorted(_describe(registry), key=lambda metric: metric.name)


def services() -> dict[str, list[Metric]]:
    """The metrics of both services and of the live check, those that services share apart."""
    shared, generation, detection, canary = (CollectorRegistry() for _ in range(4))
    HttpMetrics(shared, "0")
    ReadinessCollector(dict, shared)
    watch_keys(_NoKeys(), shared)
    LimitMetrics(shared)
    GenerationMetrics(generation)
    EngineMetrics(generation)
    DetectionMetrics(detection)
    CanaryMetrics(canary)
    return {
        "Both services": metrics_of(shared),
        "Generation": metrics_of(generation),
        "Detection": metrics_of(detection),
        "Live check": metrics_of(canary),
    }


def metrics_page() -> str:
    """The whole page."""
    parts = [HEADER]
    for title, metrics in services().items():
        parts.append(f"\n## {title}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
        parts += [
            f"| `{metric.name}` | {metric.kind} | {', '.join(metric.labels)} | {metric.text} |\n"
            for metric in metrics
        ]
    parts.append("\n## Labels\n\nNo label takes a value from a request, so none can explode.\n\n")
    parts.append("| label | values |\n|---|---|\n")
    parts += [f"| {label} | {values} |\n" for label, values in LABELS.items()]
    return "".join(parts)


class _NoKeys:
    """A cache before its first reading."""

    keys: tuple[UnlockedKey, ...] = ()
    age_seconds: float | None = None
    max_age_seconds = 0.0
    problems: Mapping[str, Exception] = MappingProxyType({})
    last_error: Exception | None = None


def _describe(registry: CollectorRegistry) -> Iterator[Metric]:
    collectors: Any = registry._collector_to_names  # no public way to see labels before there are values
    for collector in collectors:
        if isinstance(collector, MetricWrapperBase):
            yield _wrapped(collector)
        else:
            for family in collector.describe():
                yield Metric(family.name, family.type, tuple(family._labelnames), family.documentation)


def _wrapped(collector: Any) -> Metric:
    ending = {"counter": "_total", "info": "_info"}.get(collector._type, "")
    labels = tuple(collector._labelnames)
    return Metric(collector._name + ending, collector._type, labels, collector._documentation)
