"""Latencies under OpenTelemetry's names, which dashboards ask for that know nothing of us."""

from collections.abc import Iterable
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Histogram

Operation = Literal["chat", "text_completion"]
PROVIDER = "ttmark"
_LABELS = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type")
_DURATION = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)


class ServerMetrics:
    """`gen_ai.server.*`, with the bounds of the conventions for generative AI (in development, as they say).

    A request is one completion; times of tokens are those of completions that ended well.
    """

    def __init__(self, registry: CollectorRegistry, models: Iterable[str]) -> None:
        def histogram(name: str, bounds: tuple[float, ...]) -> Histogram:
            text = f"`gen_ai.server.{name}` of OpenTelemetry's conventions; a request is a completion."
            spelling = f"gen_ai_server_{name.replace('.', '_')}_seconds"
            return Histogram(spelling, text, _LABELS, buckets=bounds, registry=registry)

        self._duration = histogram("request.duration", _DURATION)
        self._first_token = histogram("time_to_first_token", _FIRST_TOKEN)
        self._per_token = histogram("time_per_output_token", _PER_TOKEN)
        for model in models:
            for operation in get_args(Operation):
                for each in (self._duration, self._first_token, self._per_token):
                    each.labels(operation, PROVIDER, model, "")

    def ended(
        self, operation: Operation, model: str, error: str, duration: float, *of_tokens: float | None
    ) -> None:
        """A completion ended after so many seconds, with its times to the first token and per token after it;
        `error` is a code of the service's errors, `cancelled` or `_OTHER`, and empty where it ended well."""
        labels = (operation, PROVIDER, model, error)
        self._duration.labels(*labels).observe(duration)
        for histogram, seconds in zip((self._first_token, self._per_token), of_tokens, strict=True):
            if seconds is not None and not error:
                histogram.labels(*labels).observe(seconds)
