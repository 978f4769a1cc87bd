"""What is measured of completions: metrics, a span each, and the engine's errors as clients hear them."""

import time
from bisect import bisect_right
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import partial
from typing import cast

from opentelemetry.trace import Span, StatusCode, Tracer
from prometheus_client import CollectorRegistry, Counter, Histogram

from ttmark.gen_service.api.backend import Generator
from ttmark.gen_service.engine import (
    ContextTooLong,
    Delta,
    Draining,
    EngineDied,
    GenerationRequest,
    OutOfTime,
    Overloaded,
    SequenceFailed,
)
from ttmark.shared.http.service_errors import (
    ContextLengthExceeded,
    InternalError,
    ServiceError,
    ShuttingDown,
    TooManyRequests,
    Unavailable,
)
from ttmark.shared.schemas.watermark_block import Detectability

_FIRST_TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PER_TOKEN_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_TOTAL_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_DECADES_BUCKETS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0)
_LENGTHS_FROM = (50, 100, 200, 400)
LENGTHS = ("0-49", "50-99", "100-199", "200-399", "400-")
DETECTABILITIES: tuple[Detectability, ...] = ("strong", "weak", "none")
READINGS = ("read", "cancelled", "failed", "rejected")
OUTCOMES = frozenset({"stop", "length", "cancelled", "failed", "rejected"})
REASONS = frozenset(
    {
        "opening",
        "warm_up",
        "repeated_context",
        "greedy",
        "odd_end",
        "disabled",
        "too_short",
        "confined",
        "policy",
    }
)
DECISIONS = ("marked", "unmarked", "denied")
_OTHER = "other"


class GenerationMetrics:
    """Completions by outcome, tokens, latencies as a client sees them, and what became of the watermark."""

    def __init__(
        self, registry: CollectorRegistry, models: Collection[str] = (), rules: Collection[str] = ()
    ) -> None:
        """`models` are the names under which models are served, `rules` those of the marking policy."""
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._completions = counter("ttmark_gen_completions", "Completions by how they ended.", ["outcome"])
        self._rejections = counter(
            "ttmark_gen_rejections", "Completions that the engine refused or failed.", ["reason"]
        )
        self._tokens = counter("ttmark_gen_tokens", "Tokens read and generated.", ["kind"])
        self._first_token = histogram(
            "ttmark_gen_time_to_first_token_seconds",
            "Time from a completion's submission to its first token.",
            buckets=_FIRST_TOKEN_BUCKETS,
        )
        self._per_token = histogram(
            "ttmark_gen_time_per_output_token_seconds",
            "Mean time per token after the first, of finished completions.",
            buckets=_PER_TOKEN_BUCKETS,
        )
        self._duration = histogram(
            "ttmark_gen_completion_duration_seconds",
            "Time from a completion's submission to its end.",
            buckets=_TOTAL_BUCKETS,
        )
        self._watermarks = counter("ttmark_gen_watermarks", "Responses by watermark status.", ["status"])
        self._blocks = counter(
            "ttmark_gen_blocks", "Blocks of tokens by what became of their watermark.", ["outcome"]
        )
        self._evidence = histogram(
            "ttmark_gen_evidence_decades",
            "-log10 p of each completion that was to be marked, under its own key.",
            ["model"],
            buckets=_DECADES_BUCKETS,
        )
        self._receipts = counter(
            "ttmark_gen_receipts",
            "Completions by length in tokens and by how detectable they are.",
            ["model", "length", "detectability"],
        )
        self._readings = counter(
            "ttmark_gen_readings", "Texts that were to be read, by how it ended.", ["outcome"]
        )
        self._reading_time = histogram(
            "ttmark_gen_reading_duration_seconds",
            "Time of a request for readings, of all its texts together.",
            buckets=_TOTAL_BUCKETS,
        )
        self._policy = counter(
            "ttmark_gen_policy_decisions",
            "Requests by the rule of the marking policy that decided, and by what was to become of them.",
            ["rule", "decision"],
        )

        for rule in rules:
            for decision in DECISIONS:
                self._policy.labels(rule, decision)
        for model in models:
            self._evidence.labels(model)
            for length in LENGTHS:
                for word in DETECTABILITIES:
                    self._receipts.labels(model, length, word)
        for outcome in sorted(OUTCOMES):
            self._completions.labels(outcome)
        for outcome in ("watermarked", *sorted(REASONS)):
            self._blocks.labels(outcome)
        for outcome in READINGS:
            self._readings.labels(outcome)
        for status in ("watermarked", "partial", "unwatermarked"):
            self._watermarks.labels(status)
        self._rejections.labels("rate_limit_exceeded")

    def completion_ended(self, outcome: str, seconds: float) -> None:
        """One completion ended after `seconds`."""
        self._completions.labels(outcome if outcome in OUTCOMES else _OTHER).inc()
        self._duration.observe(seconds)

    def rejected(self, reason: str) -> None:
        """A request was refused; `reason` is the code of the error."""
        self._rejections.labels(reason).inc()

    def first_token(self, seconds: float) -> None:
        self._first_token.observe(seconds)

    def later_tokens(self, tokens: int, seconds: float) -> None:
        """A completion's `tokens` after the first took `seconds` together."""
        if tokens > 0:
            self._per_token.observe(seconds / tokens)

    def tokens(self, *, prompt: int = 0, completion: int = 0, read: int = 0) -> None:
        """Counts tokens of prompts, tokens that were generated, and those of texts that are only read."""
        self._tokens.labels("prompt").inc(prompt)
        self._tokens.labels("completion").inc(completion)
        self._tokens.labels("read").inc(read)

    def texts_read(self, outcome: str, texts: int, seconds: float) -> None:
        """A request for readings ended after `seconds`; `outcome` is one of READINGS."""
        self._readings.labels(outcome).inc(texts)
        self._reading_time.observe(seconds)

    def watermark(self, status: str, watermarked_blocks: int, reasons: Mapping[str, int]) -> None:
        self._watermarks.labels(status).inc()
        self._blocks.labels("watermarked").inc(watermarked_blocks)
        for reason, blocks in reasons.items():
            self._blocks.labels(reason if reason in REASONS else _OTHER).inc(blocks)

    def policy(self, rule: str, decision: str) -> None:
        """A rule of the marking policy decided on a request; `decision` is one of DECISIONS."""
        self._policy.labels(rule, decision).inc()

    def receipt(self, model: str, tokens: int, word: Detectability, log10_p: float | None) -> None:
        """A completion of so many tokens ended; `log10_p` is None where it was not to be marked."""
        self._receipts.labels(model, LENGTHS[bisect_right(_LENGTHS_FROM, tokens)], word).inc()
        if log10_p is not None:
            self._evidence.labels(model).observe(-log10_p)


class GenerationFailed(InternalError):
    code, title = "generation_failed", "Generation failed"


class DeadlineExceeded(Unavailable):
    code, title = "deadline_exceeded", "Deadline exceeded"


def as_service_error(error: Exception) -> ServiceError | None:
    """The answer to an error of the engine; None when it is not one that the engine raises on purpose."""
    match error:
        case ServiceError():
            return error
        case Overloaded():
            return TooManyRequests("The queue of the service is full.", retry_after=error.retry_after)
        case Draining():
            return ShuttingDown("The service is shutting down; send the request again.", retry_after=1)
        case OutOfTime():
            message = "The completion was not finished in the time that the service gives it."
            return DeadlineExceeded(message, retry_after=1)
        case EngineDied():
            return Unavailable("The model has stopped unexpectedly.", retry_after=1)
        case ContextTooLong():
            return ContextLengthExceeded(f"{error}.", param="max_tokens")
        case SequenceFailed():
            return GenerationFailed("The completion failed while it was generated; others are not affected.")
    return None


@contextmanager
def engine_errors_as_answers() -> Iterator[None]:
    """Raises the engine's errors as the service errors that stand for them."""
    try:
        yield
    except Exception as error:
        answer = as_service_error(error)
        if answer is None or answer is error:
            raise
        raise answer from error


class Observer:
    """Records latencies, tokens and ends of completions, each in a span of its own."""

    def __init__(self, metrics: GenerationMetrics, tracer: Tracer) -> None:
        self._metrics = metrics
        self._tracer = tracer

    async def observe(self, generator: Generator, request: GenerationRequest) -> AsyncGenerator[Delta, None]:
        """The completion's pieces.

        Raises:
            ServiceError: the engine refused or failed the request.
        """
        progress = _Progress(self._metrics, self._span(generator, request))
        try:
            with engine_errors_as_answers():
                stream = cast(AsyncGenerator[Delta, None], generator.generate(request))
                async with aclosing(stream):
                    async for delta in stream:
                        progress.add(delta)
                        yield delta
        except Exception as error:
            progress.failed(error)
            raise
        finally:
            progress.end()

    def check_queue(self, generator: Generator, tenant: str) -> None:
        """Refuses what would find the queue full, before anything is spent on the request.

        Raises:
            ServiceError: the queue is full.
        """
        try:
            with engine_errors_as_answers():
                generator.check_queue(tenant)
        except ServiceError as error:
            self._metrics.rejected(error.code)
            self._metrics.completion_ended("rejected", 0.0)
            raise

    def _span(self, generator: Generator, request: GenerationRequest) -> Span:
        return self._tracer.start_span(
            "generate",
            attributes={
                "gen_ai.request.model": generator.model_id,
                "gen_ai.usage.input_tokens": len(request.prompt_ids),
                "gen_ai.request.max_tokens": request.sampling.max_tokens,
                "ttmark.watermarked": request.marking is not None,
            },
        )


class _Progress:
    """How far one completion has come; `cancelled` is how it ends when nothing else is said."""

    def __init__(self, metrics: GenerationMetrics, span: Span) -> None:
        self._metrics = metrics
        self._span = span
        self._started = time.perf_counter()
        self._first_at: float | None = None
        self._tokens = 0
        self._outcome = "cancelled"

    def add(self, delta: Delta) -> None:
        if delta.token_ids and self._first_at is None:
            self._first_at = time.perf_counter()
            self._metrics.first_token(self._first_at - self._started)
            self._span.add_event("first_token")
        self._tokens += len(delta.token_ids)
        self._outcome = delta.finish_reason or self._outcome

    def failed(self, error: Exception) -> None:
        self._outcome = "failed"
        if isinstance(error, ServiceError):
            self._metrics.rejected(error.code)
            self._outcome = "failed" if self._tokens else "rejected"
        self._span.set_status(StatusCode.ERROR)
        self._span.set_attribute("error.type", type(error).__name__)

    def end(self) -> None:
        ended = time.perf_counter()
        self._metrics.completion_ended(self._outcome, ended - self._started)
        self._metrics.tokens(completion=self._tokens)
        if self._first_at is not None:
            self._metrics.later_tokens(self._tokens - 1, ended - self._first_at)
        self._span.set_attribute("gen_ai.usage.output_tokens", self._tokens)
        self._span.set_attribute("ttmark.outcome", self._outcome)
        self._span.end()
