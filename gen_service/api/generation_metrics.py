"""What is measured of completions: metrics, a span each, and the engine's errors as clients hear them."""

import time
from bisect import bisect_right
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import partial
from typing import cast

from opentelemetry.trace import NoOpTracer, StatusCode, Tracer
from prometheus_client import CollectorRegistry, Counter, Histogram

from ttmark.gen_service.api.plan.served_model import Generator
from ttmark.gen_service.api.server_metrics import PROVIDER, Operation, ServerMetrics
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, SequenceFailed
from ttmark.gen_service.engine.errors import ContextTooLong, Draining, EngineDied, OutOfTime, Overloaded
from ttmark.shared.http.service_errors import (
    ContextLengthExceeded,
    InternalError,
    ServiceError,
    ShuttingDown,
    TooManyRequests,
    Unavailable,
)
from ttmark.shared.schemas.generation.watermark_block import Detectability

_FIRST_TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PER_TOKEN_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_TOTAL_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_DECADES_BUCKETS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0)
_LENGTHS_FROM = (50, 100, 200, 400)
LENGTHS = ("0-49", "50-99", "100-199", "200-399", "400-")
DETECTABILITIES: tuple[Detectability, ...] = ("strong", "weak", "none")
READINGS = ("read", "cancelled", "failed", "rejected")
OUTCOMES = ("stop", "length", "cancelled", "failed", "rejected")
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
_NO_TRACER = NoOpTracer()


class GenerationMetrics:
    """Completions by outcome, tokens, latencies as a client sees them, and what became of the watermark.

    Args:
        rules: names of those of the marking policy.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        models: Collection[str] = (),
        rules: Collection[str] = (),
        tracer: Tracer = _NO_TRACER,
    ) -> None:
        self._tracer = tracer
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
            ["model"],
            buckets=_FIRST_TOKEN_BUCKETS,
        )
        self._per_token = histogram(
            "ttmark_gen_time_per_output_token_seconds",
            "Mean time per token after the first, of finished completions.",
            ["model"],
            buckets=_PER_TOKEN_BUCKETS,
        )
        self._duration = histogram(
            "ttmark_gen_completion_duration_seconds",
            "Time from a completion's submission to its end; one that was turned away has none.",
            ["model"],
            buckets=_TOTAL_BUCKETS,
        )
        self._server = ServerMetrics(registry, models)
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
        self._policy = counter(
            "ttmark_gen_policy_decisions",
            "Requests by the rule of the marking policy that decided, and by what was to become of them.",
            ["rule", "decision"],
        )

        for rule in rules:
            for decision in DECISIONS:
                self._policy.labels(rule, decision)
        for model in models:
            for of_model in (self._first_token, self._per_token, self._duration, self._evidence):
                of_model.labels(model)
            for length in LENGTHS:
                for word in DETECTABILITIES:
                    self._receipts.labels(model, length, word)
        for outcome in OUTCOMES:
            self._completions.labels(outcome)
        for outcome in ("watermarked", *sorted(REASONS)):
            self._blocks.labels(outcome)
        for outcome in READINGS:
            self._readings.labels(outcome)
        for status in ("watermarked", "partial", "unwatermarked"):
            self._watermarks.labels(status)
        self._rejections.labels("rate_limit_exceeded")

    def tokens(self, *, prompt: int = 0, completion: int = 0, read: int = 0) -> None:
        """Counts tokens of prompts, tokens that were generated, and those of texts that are only read."""
        self._tokens.labels("prompt").inc(prompt)
        self._tokens.labels("completion").inc(completion)
        self._tokens.labels("read").inc(read)

    def texts_read(self, outcome: str, texts: int) -> None:
        self._readings.labels(outcome).inc(texts)

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

    async def observe(
        self, generator: Generator, request: GenerationRequest, operation: Operation
    ) -> AsyncGenerator[Delta, None]:
        """The completion's pieces; its latencies, tokens and end are recorded, in a span of its own.

        Raises:
            ServiceError: the engine refused or failed the request.
        """
        began, model = time.perf_counter(), generator.model_id
        tokens, outcome, trouble = 0, "cancelled", "cancelled"
        first_token: float | None = None
        span = self._tracer.start_span(
            "generate",
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": PROVIDER,
                "gen_ai.request.model": model,
                "gen_ai.usage.input_tokens": len(request.prompt_ids),
                "gen_ai.request.max_tokens": request.sampling.max_tokens,
                "ttmark.watermarked": request.marking is not None,
            },
        )
        try:
            with engine_errors_as_answers():
                stream = cast(AsyncGenerator[Delta, None], generator.generate(request))
                async with aclosing(stream):
                    async for delta in stream:
                        if delta.token_ids and first_token is None:
                            first_token = time.perf_counter() - began
                            self._first_token.labels(model).observe(first_token)
                            span.add_event("first_token")
                        tokens += len(delta.token_ids)
                        if delta.finish_reason:
                            outcome, trouble = delta.finish_reason, ""
                        yield delta
        except Exception as error:
            outcome, trouble = "failed", "_OTHER"
            if isinstance(error, ServiceError):
                self._rejections.labels(error.code).inc()
                outcome, trouble = "failed" if tokens else "rejected", error.code
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            duration = time.perf_counter() - began
            self._completions.labels(outcome).inc()
            self.tokens(completion=tokens)
            per_token = (duration - first_token) / (tokens - 1) if first_token and tokens > 1 else None
            if per_token is not None:
                self._per_token.labels(model).observe(per_token)
            if outcome != "rejected":
                self._duration.labels(model).observe(duration)
            self._server.ended(operation, model, trouble, duration, first_token, per_token)
            span.set_attribute("gen_ai.usage.output_tokens", tokens)
            span.set_attribute("ttmark.outcome", outcome)
            span.end()

    def check_queue(self, generator: Generator, tenant: str) -> None:
        """Refuses what would find the queue full, before anything is spent on the request.

        Raises:
            ServiceError: the queue is full.
        """
        try:
            with engine_errors_as_answers():
                generator.check_queue(tenant)
        except ServiceError as error:
            self._rejections.labels(error.code).inc()
            self._completions.labels("rejected").inc()
            raise


class GenerationFailed(InternalError):
    code, title = "generation_failed", "Generation failed"


class DeadlineExceeded(Unavailable):
    code, title = "deadline_exceeded", "Deadline exceeded"


@contextmanager
def engine_errors_as_answers() -> Iterator[None]:
    """Raises the engine's errors as the service errors that stand for them."""
    try:
        yield
    except Overloaded as error:
        raise TooManyRequests("The queue of the service is full.", retry_after=error.retry_after) from error
    except Draining as error:
        message = "The service is shutting down; send the request again."
        raise ShuttingDown(message, retry_after=1) from error
    except OutOfTime as error:
        message = "The completion was not finished in the time that the service gives it."
        raise DeadlineExceeded(message, retry_after=1) from error
    except EngineDied as error:
        raise Unavailable("The model has stopped unexpectedly.", retry_after=1) from error
    except ContextTooLong as error:
        raise ContextLengthExceeded(f"{error}.", param="max_tokens") from error
    except SequenceFailed as error:
        message = "The completion failed while it was generated; others are not affected."
        raise GenerationFailed(message) from error
