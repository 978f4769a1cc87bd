"""Prometheus metrics of the live check."""

import time
from functools import partial
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

CanaryOutcome = Literal["ok", "missed", "false_alarm", "generation_failed", "detection_failed"]

_STEP_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class CanaryMetrics:
    """Runs by outcome, when the last ones were, how long each step takes, and the evidence that was found."""

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge = partial(Gauge, registry=registry)
        self._runs = Counter("ttmark_canary_runs", "Runs by outcome.", ["outcome"], registry=registry)
        self._last_run = gauge("ttmark_canary_last_run_timestamp_seconds", "When the last run ended.")
        self._last_ok = gauge(
            "ttmark_canary_last_ok_timestamp_seconds", "When the last run ended in which all was well."
        )
        self.steps = Histogram(
            "ttmark_canary_step_duration_seconds",
            "Time that generating and detecting took.",
            ["step"],
            buckets=_STEP_BUCKETS,
            registry=registry,
        )
        self._log10_p = gauge(
            "ttmark_canary_log10_p_value",
            "Evidence in the last text of each kind; needs a token with detect:evidence.",
            ["text"],
        )
        for outcome in get_args(CanaryOutcome):
            self._runs.labels(outcome)
        self._last_run.set(time.time())  # the time of silence begins with the process

    def ended(self, outcome: CanaryOutcome) -> None:
        """A run ended now."""
        self._runs.labels(outcome).inc()
        self._last_run.set_to_current_time()
        if outcome == "ok":
            self._last_ok.set_to_current_time()

    def evidence(self, text: str, log10_p: float | None) -> None:
        """What was found in the `generated` or the `human` text."""
        if log10_p is not None:
            self._log10_p.labels(text).set(log10_p)
