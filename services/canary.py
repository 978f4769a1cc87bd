"""The live check: a generated text must be recognised, a human's must not, through the services' own API."""

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from prometheus_client import CollectorRegistry, start_http_server

from services.cli.demonstration import HUMAN_TEXT, PROMPT
from services.model_folder import model_id
from services.runtime import StartupError
from services.settings_canary import CanarySettings
from shared.client import ClientError, TTMarkClient
from shared.observability.canary_metrics import CanaryMetrics, CanaryOutcome, CanaryStep
from shared.observability.logging import configure_logging
from shared.schemas.detection import DetectionResult, DirectRequest, Document

_REQUEST_SECONDS = 60.0


class Canary:
    """Checks both services as a client would."""

    def __init__(
        self,
        generation: TTMarkClient,
        detection: TTMarkClient,
        metrics: CanaryMetrics,
        settings: CanarySettings,
    ) -> None:
        self._generation = generation
        self._detection = detection
        self._metrics = metrics
        self._settings = settings
        self._log = structlog.get_logger("ttmark.canary")

    def run(self) -> CanaryOutcome:
        """One check; records how it ended."""
        outcome, reason = self._check()
        self._metrics.ended(outcome)
        if outcome == "ok":
            self._log.info("canary", outcome=outcome)
        else:
            self._log.error("canary", outcome=outcome, reason=reason)
        return outcome

    def _check(self) -> tuple[CanaryOutcome, str]:
        try:
            with self._timed("generate"):
                text, key_id = self._generate()
        except (ClientError, KeyError, IndexError, TypeError) as error:
            return "generation_failed", str(error)
        try:
            with self._timed("detect"):
                generated = self._detect(text, [key_id])
                human = self._detect(self._human_text(), None)
        except ClientError as error:
            return "detection_failed", str(error)
        self._metrics.evidence("generated", generated.log10_p)
        self._metrics.evidence("human", human.log10_p)
        if generated.verdict != "watermarked":
            return "missed", f"the generated text is {generated.verdict} under key {key_id}"
        if human.verdict == "watermarked":
            return "false_alarm", "a human's text is taken for a watermarked one"
        return "ok", ""

    def _generate(self) -> tuple[str, str]:
        completion = self._generation.complete(
            {
                "model": model_id(self._settings.model),
                "prompt": PROMPT,
                "max_tokens": self._settings.canary_tokens,
                "temperature": 1.0,
                "top_p": 0.95,
                "top_k": 50,
                "ignore_eos": True,
            }
        )
        return completion["choices"][0]["text"], completion["watermark"]["key_id"]

    def _human_text(self) -> str:
        """A human's words in a new order each time: the same text over and over would bend the detector's
        statistics of p-values."""
        words = HUMAN_TEXT.split()
        random.shuffle(words)
        return " ".join(words)

    def _detect(self, text: str, keys: list[str] | None) -> DetectionResult:
        request = DirectRequest(inputs=[Document(text=text)], keys=keys, fpr=self._settings.canary_fpr)
        return self._detection.detect_direct(request).results[0]

    @contextmanager
    def _timed(self, step: CanaryStep) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._metrics.took(step, time.perf_counter() - started)


def serve_canary(settings: CanarySettings) -> None:
    """Checks every `canary_seconds` and serves the metrics until SIGINT or SIGTERM.

    Raises:
        StartupError: no access token, or the port is taken.
    """
    configure_logging()
    registry = CollectorRegistry()
    metrics = CanaryMetrics(registry)
    token = _token(settings)
    try:
        server, thread = start_http_server(settings.canary_port, settings.host, registry)
    except OSError as error:
        raise StartupError(
            f"cannot listen on {settings.host}:{settings.canary_port} ({error.strerror})"
        ) from error
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with (
        TTMarkClient(settings.gen_url, token, timeout=_REQUEST_SECONDS) as generation,
        TTMarkClient(settings.detect_url, token, timeout=_REQUEST_SECONDS) as detection,
    ):
        canary = Canary(generation, detection, metrics, settings)
        while not stop.is_set():
            canary.run()
            stop.wait(settings.canary_seconds)
    server.shutdown()
    thread.join()
    server.server_close()


def _token(settings: CanarySettings) -> str:
    if settings.token is not None:
        return settings.token.get_secret_value()
    try:
        return settings.token_file.read_text().strip()
    except OSError as error:
        raise StartupError(
            f"cannot read the access token from {settings.token_file} ({error.strerror}); "
            "`ttmark tokens create` makes one"
        ) from error
