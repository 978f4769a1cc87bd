"""docs/metrics.md, from the metrics that the services register."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from ttmark.detect_service.api.metrics import MODES, REFUSALS, DetectionMetrics, WorkMetrics
from ttmark.detect_service.features.files.routes import ExtractionMetrics
from ttmark.detect_service.features.files.text.extraction import Format
from ttmark.detect_service.features.jobs.job_service import EVENTS, JobMetrics
from ttmark.detect_service.features.reader.reads_along import ReaderMetrics
from ttmark.gen_service.api.generation_metrics import DECISIONS, DETECTABILITIES, LENGTHS, GenerationMetrics
from ttmark.gen_service.api.server_metrics import PROVIDER, Operation
from ttmark.gen_service.engine.loop.engine_metrics import ROW_KINDS, STEP_PARTS, EngineMetrics
from ttmark.services.features.audit.trail import watch_trail
from ttmark.services.features.canary.canary import CanaryMetrics
from ttmark.shared.http.health import ReadinessCollector
from ttmark.shared.http.telemetry import HttpMetrics
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.key_metrics import watch_keys, watch_ledger, watch_volume
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.rotation_by_volume import VolumeCounter
from ttmark.shared.limits.rate_limits import LIMITS, LimitMetrics
from ttmark.shared.observability.memory import watch_memory
from ttmark.shared.vault.kek import KEK_BYTES, KeyEncryptionKey
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.stores.sqlite_store import SqliteStore

HEADER = """\
# Metrics

What `/metrics` of both services and of the live check shows, with [labels](#labels) in brackets. What ends in
`_total` is a counter; what is no `histogram` (`_bucket`, `_sum`, `_count`) either is a gauge. The usual
`process_*` metrics are there, too. What metrics after "Also" count, `/metrics` says beside them.
"""

EVIDENT = 12
"""A metric that has so few words, or fewer, is named alone: `/metrics` has the words."""

# Where the values of a label come from; none of them is written by a client.
LABELS = {
    "check": "conditions of `/readyz`",
    "decision": ", ".join(f"`{decision}`" for decision in DECISIONS),
    "detectability": ", ".join(f"`{word}`" for word in DETECTABILITIES),
    "error_type": "empty where a completion ended well; `cancelled`, a code of an error, or `_OTHER`",
    "event": "of jobs " + ", ".join(f"`{event}`" for event in EVENTS),
    "format": ", ".join(f"`{kind}`" for kind in get_args(Format)) + "; anything else is `other`",
    "gen_ai_operation_name": ", ".join(f"`{operation}`" for operation in get_args(Operation)),
    "gen_ai_provider_name": f"`{PROVIDER}`",
    "gen_ai_request_model": "as `model`",
    "kind": ", ".join(f"`{kind}`" for kind in ROW_KINDS) + "; of tokens `prompt`, `completion`",
    "length": "tokens: " + ", ".join(f"`{length}`" for length in LENGTHS),
    "limit": ", ".join(f"`{limit}`" for limit in LIMITS),
    "method": "HTTP methods; anything else is `other`",
    "mode": ", ".join(f"`{mode}`" for mode in MODES),
    "model": "served models, set by the operator; in detection the folder with the tried keys' tokenizer, or "
    "`several`; of HTTP requests empty where no model or key was asked",
    "outcome": "how something ended, a fixed list in the code; anything else is `other`",
    "part": ", ".join(f"`{part}`" for part in STEP_PARTS),
    "python": "one",
    "reason": "codes of errors, a fixed list in the code; of work "
    + ", ".join(f"`{one}`" for one in REFUSALS),
    "route": "route templates; anything else is `unmatched`",
    "rule": "names of the marking policy's rules, set by the operator, and `default`",
    "state": "`running`, `waiting`; of key versions their five states",
    "status": "HTTP status, or the three states of a response's watermark",
    "step": "`generate`, `detect`",
    "text": "`generated`, `human`",
    "verdict": "`watermarked`, `not_detected`, `too_short`, `not_examined`, `no_verdict`",
    "version": "one",
}


@dataclass(frozen=True)
class Metric:
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
    store = SqliteStore(Path("not opened"))
    ring = KeyRing(store, KeyEncryptionKey(bytes(KEK_BYTES)))
    watch_keys(KeyCache(ring), shared)
    watch_ledger(Ledger(), shared)
    watch_trail(None, shared)
    LimitMetrics(shared)
    watch_memory(shared)
    GenerationMetrics(generation)
    EngineMetrics(generation)
    watch_volume(VolumeCounter(store, lambda: ()), generation)
    DetectionMetrics(detection)
    ExtractionMetrics(detection)
    WorkMetrics(detection)
    JobMetrics(detection)
    ReaderMetrics(detection)
    CanaryMetrics(canary)
    return {
        "Both services": metrics_of(shared),
        "Generation": metrics_of(generation),
        "Detection": metrics_of(detection),
        "Live check": metrics_of(canary),
    }


def metrics_page() -> str:
    parts = [HEADER]
    for title, metrics in services().items():
        evident = [metric for metric in metrics if len(metric.text.split()) <= EVIDENT]
        parts.append(f"\n## {title}\n\n")
        parts += [f"- {_name(metric)}: {metric.text}\n" for metric in metrics if metric not in evident]
        parts.append(f"- Also {', '.join(map(_name, evident))}.\n" if evident else "")
    parts.append("\n## Labels\n\nNo label takes a value from a request, so none can explode.\n\n")
    parts += [f"- {label}: {values}\n" for label, values in LABELS.items()]
    return "".join(parts)


def _name(metric: Metric) -> str:
    told = ("; ".join(("histogram",) * (metric.kind == "histogram") + (", ".join(metric.labels),))).strip(
        "; "
    )
    return f"`{metric.name}`{f' ({told})' if told else ''}"


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
