"""One completion's stream, measured and traced as it passes; what a client hears of the engine's errors."""

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import cast

from opentelemetry.trace import Span, StatusCode, Tracer

from ttmark.gen_service.api.backend import Generator
from ttmark.gen_service.api.generation_metrics import GenerationMetrics
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
