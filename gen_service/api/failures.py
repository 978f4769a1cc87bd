"""What a client hears of the engine's errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from ttmark.gen_service.engine import (
    ContextTooLong,
    Draining,
    EngineDied,
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
