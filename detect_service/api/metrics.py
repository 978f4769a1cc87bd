"""What is recorded of requests: Prometheus metrics, and the event of a detection."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.verdict import DocumentFinding
from ttmark.shared.access.scopes import Principal
from ttmark.shared.events import Event, EventSink
from ttmark.shared.http.service_errors import InternalError
from ttmark.shared.schemas.detection.detect import DetectionResult, Verdict

MODES = ("combined", "direct", "aligned", "localized")
_LENGTH_BUCKETS = (16, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536)
# Equal steps: over texts without a watermark the p-value is uniform, so this histogram must stay flat.
_P_VALUE_BUCKETS = tuple(step / 20 for step in range(1, 21))


class DetectionMetrics:
    """Verdicts, lengths, hypotheses and null p-values of documents; `models`: names by fingerprint."""

    def __init__(self, registry: CollectorRegistry, models: Mapping[str, str] | None = None) -> None:
        self.models = models or {}
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._documents = counter("ttmark_detect_documents", "Documents examined.", ["mode", "verdict"])
        self._tokens = histogram(
            "ttmark_detect_document_tokens",
            "Length of examined documents in tokens.",
            ["mode"],
            buckets=_LENGTH_BUCKETS,
        )
        self._hypotheses = counter(
            "ttmark_detect_hypotheses", "Keys, versions and phases tried, over all documents.", ["mode"]
        )
        self._p_values = histogram(
            "ttmark_detect_not_detected_p_value",
            "P-values under the first key tried where nothing was found; flat while the null model holds.",
            ["mode"],
            buckets=_P_VALUE_BUCKETS,
        )

        for mode in MODES:
            for verdict in get_args(Verdict):
                self._documents.labels(mode, verdict)

    def document(
        self, mode: str, verdict: str, tokens: int, hypotheses: int, null_log10_p: float | None
    ) -> None:
        """Records one document.

        Args:
            null_log10_p: p-value under one hypothesis that was chosen without looking at the evidence.
        """
        self._documents.labels(mode, verdict).inc()
        self._tokens.labels(mode).observe(tokens)
        self._hypotheses.labels(mode).inc(hypotheses)
        if verdict == "not_detected" and null_log10_p is not None:
            self._p_values.labels(mode).observe(10**null_log10_p)


_HALF = math.log10(0.5)


class Journal:
    """Hears of a request's keys and results as they come; `state`, of its scope, learns of whose model."""

    def __init__(self, mode: str, metrics: DetectionMetrics, route: str, state: dict[str, Any]) -> None:
        self._state = state
        self._mode = mode
        self._route = route
        self._metrics = metrics
        self._keys: tuple[str, ...] = ()
        self._tokens = 0
        self._verdicts: dict[str, int] = {}

    def keys(self, selection: KeySelection) -> None:
        numbers = selection.numbers
        self._keys = tuple(f"{key.key_id}/{one}" for key in selection.keys for one in numbers[key.key_id])
        models = {self._metrics.models.get(key.profile.tokenizer_fingerprint, "") for key in selection.keys}
        self._state["model"] = models.pop() if len(models) == 1 else "several"

    def document(self, result: DetectionResult, finding: DocumentFinding | None) -> None:
        self._verdicts[result.verdict] = self._verdicts.get(result.verdict, 0) + 1
        if result.error is not None and result.error.code != InternalError.code:
            return  # the caller's to mend: operators hear of documents that fail
        null_log10_p = finding.null_log10_p if finding else None
        if result.p_value is None and null_log10_p is not None and null_log10_p < _HALF:
            # Who reads /metrics must not learn what its own verdicts hide; the drift of the null is read off
            # the upper half.
            null_log10_p = None
        self._metrics.document(self._mode, result.verdict, result.tokens, result.hypotheses, null_log10_p)
        self._tokens += result.tokens

    def close(self, caller: Principal, audit: EventSink) -> None:
        """Tells what was asked with which keys: no text, no secret."""
        audit(
            Event(
                "key.detect",
                token_id=caller.token_id,
                tenant=caller.tenant,
                request_id=self._state["request_id"],
                route=self._route,
                tokens=self._tokens,
                keys=self._keys,
                verdicts=self._verdicts,
            )
        )


# `cost`: one request asks for too much; `budget`: the tenant's minute is used up; `queue`: too much waits.
REFUSALS = ("cost", "budget", "queue")
_WAIT_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class WorkMetrics:
    """Jobs in hand, how long they wait, what they cost, and those that were given up or refused."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        self.depth = Gauge(
            "ttmark_detect_queue_jobs", "Jobs of the workers, running and waiting.", registry=registry
        )
        self.waits = Histogram(
            "ttmark_detect_queue_seconds",
            "Time from a job's arrival to its first turn on a worker.",
            buckets=_WAIT_BUCKETS,
            registry=registry,
        )
        self.blocks = counter(
            "ttmark_detect_work_blocks", "Estimated work of admitted requests, in hashed blocks.", ["mode"]
        )
        self.abandoned = counter(
            "ttmark_detect_jobs_abandoned", "Jobs given up because their client had left."
        )
        self.refusals = counter("ttmark_detect_work_refusals", "Requests refused for their work.", ["reason"])
        for mode in MODES:
            self.blocks.labels(mode)
        for reason in REFUSALS:
            self.refusals.labels(reason)
