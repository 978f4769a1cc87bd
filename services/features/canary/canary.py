"""The live check: a generated text must be recognised, a human's must not, through the services' own API."""

import random
import signal
import threading
import time
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, get_args

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from ttmark.services.cli.demonstration import PROMPT, human_text
from ttmark.services.features.canary.settings import CanarySettings
from ttmark.services.model_folder import default_model, model_id
from ttmark.services.startup import StartupError
from ttmark.shared.client import Client, ClientError
from ttmark.shared.observability.logging import configure_logging
from ttmark.shared.schemas.detection.detect import CombinedRequest, DetectionResult, Document

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
        self._runs.labels(outcome).inc()
        self._last_run.set_to_current_time()
        if outcome == "ok":
            self._last_ok.set_to_current_time()

    def evidence(self, text: str, log10_p: float | None) -> None:
        """What was found in the `generated` or the `human` text."""
        if log10_p is not None:
            self._log10_p.labels(text).set(log10_p)


_REQUEST_SECONDS = 60.0
SECONDS = 60.0
"""Between two checks: an alert comes after five minutes without one, or with two that failed."""
TOKENS = 300
"""Of the generated text, enough to be recognised whenever all is well."""
# False positive rate of its questions: by chance it takes the human's text for a marked one once in a week.
_FPR = 1e-4
# Named in full: what a check finds is to change with the services, and not with a model's own defaults.
_SAMPLING = {"temperature": 1.0, "top_p": 0.95, "top_k": 50, "min_p": 0.0, "repetition_penalty": 1.0}


@dataclass(frozen=True)
class Canary:
    """Checks both services as a client would."""

    generation: Client
    detection: Client
    metrics: CanaryMetrics
    settings: CanarySettings

    @cached_property
    def _model(self) -> str:
        return model_id(self.settings.model or default_model(self.settings.state))

    def run(self) -> CanaryOutcome:
        """One check; records how it ended."""
        outcome, reason = self._check()
        self.metrics.ended(outcome)
        log = structlog.get_logger("ttmark.canary")
        if outcome == "ok":
            log.info("canary", outcome=outcome)
        else:
            log.error("canary", outcome=outcome, reason=reason)
        return outcome

    def _check(self) -> tuple[CanaryOutcome, str]:
        try:
            with self.metrics.steps.labels("generate").time():
                text, key_id = self._generate()
        except ClientError as error:
            return "generation_failed", str(error)
        try:
            with self.metrics.steps.labels("detect").time():
                generated = self._detect(text, [key_id])
                # In a new order each time: the same text over and over would bend statistics of p-values.
                words = human_text().split()
                random.shuffle(words)
                human = self._detect(" ".join(words), None)
        except ClientError as error:
            return "detection_failed", str(error)
        for result in (generated, human):
            if result.error is not None:
                return "detection_failed", result.error.message
        self.metrics.evidence("generated", generated.log10_p)
        self.metrics.evidence("human", human.log10_p)
        if generated.verdict != "watermarked":
            return "missed", f"the generated text is {generated.verdict} under key {key_id}"
        if human.verdict == "watermarked":
            return "false_alarm", "a human's text is taken for a watermarked one"
        return "ok", ""

    def _generate(self) -> tuple[str, str]:
        completion = self.generation.complete(
            {
                **_SAMPLING,
                "model": self._model,
                "prompt": PROMPT,
                "max_tokens": TOKENS,
                "ignore_eos": True,
            }
        )
        mark = completion.watermark
        if not completion.choices or mark is None or mark.key_id is None:
            raise ClientError("the answer holds no text, or names no key")
        return completion.choices[0].text, mark.key_id

    def _detect(self, text: str, keys: list[str] | None) -> DetectionResult:
        request = CombinedRequest(inputs=[Document(text=text)], keys=keys, fpr=_FPR)
        return self.detection.detect(request).results[0]


def serve_canary(settings: CanarySettings) -> None:
    """Checks once a minute and serves metrics until a signal. Raises StartupError: no token, or no port."""
    configure_logging()
    registry = CollectorRegistry()
    metrics = CanaryMetrics(registry)
    token = settings.access_token()
    try:
        server, thread = start_http_server(settings.canary_port, settings.host, registry)
    except OSError as error:
        raise StartupError(
            f"TTMARK_HOST and TTMARK_CANARY_PORT: cannot listen there ({error.strerror})"
        ) from error
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with (
        Client(settings.gen_url, token, timeout=_REQUEST_SECONDS) as generation,
        Client(settings.detect_url, token, timeout=_REQUEST_SECONDS) as detection,
    ):
        canary = Canary(generation, detection, metrics, settings)
        while not stop.is_set():
            canary.run()
            stop.wait(SECONDS)
    server.shutdown()
    thread.join()
    server.server_close()
