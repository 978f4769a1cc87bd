"""One completion's stream, measured as it passes."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from gen_service.api.failures import engine_errors_as_answers
from gen_service.api.generator import Generator
from gen_service.engine.request import Delta, GenerationRequest
from shared.http.errors import ServiceError
from shared.observability.generation_metrics import GenerationMetrics


async def measured(
    generator: Generator, request: GenerationRequest, metrics: GenerationMetrics
) -> AsyncGenerator[Delta, None]:
    """The completion's pieces; records latencies, tokens and how it ended.

    Raises:
        ServiceError: the engine refused or failed the request.
    """
    started = time.perf_counter()
    first_at: float | None = None
    outcome = "cancelled"
    tokens = 0
    try:
        with engine_errors_as_answers():
            stream = cast(AsyncGenerator[Delta, None], generator.generate(request))
            async with aclosing(stream):
                async for delta in stream:
                    if delta.token_ids and first_at is None:
                        first_at = time.perf_counter()
                        metrics.first_token(first_at - started)
                    tokens += len(delta.token_ids)
                    outcome = delta.finish_reason or outcome
                    yield delta
    except ServiceError as error:
        outcome = "failed" if tokens else "rejected"
        metrics.rejected(error.code)
        raise
    except Exception:
        outcome = "failed"
        raise
    finally:
        ended = time.perf_counter()
        metrics.completion_ended(outcome, ended - started)
        metrics.tokens(completion=tokens)
        if first_at is not None:
            metrics.later_tokens(tokens - 1, ended - first_at)
