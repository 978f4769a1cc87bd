"""Errors of the generation engine. What decoding raises, `SequenceFailed`, reaches the caller as it is."""

from ttmark.gen_service.decoding.request import GenerationRequest, ReadingRequest


class EngineError(Exception):
    """Base of every error that the engine raises on purpose."""


class ModelLoadError(EngineError):
    """A model cannot be served; the text is one line that says why."""


class ContextTooLong(EngineError):
    """Prompt and `max_tokens` together exceed what the model or the KV cache holds."""


def check_length(request: GenerationRequest | ReadingRequest, limit: int) -> None:
    """Refuses a request that does not fit into a context of `limit` tokens.

    Raises:
        ContextTooLong: naming the numbers.
    """
    prompt = len(request.prompt_ids)
    if isinstance(request, ReadingRequest):
        tokens = prompt + len(request.text_ids)
        what = f"prompt and text have {tokens}"
    else:
        tokens = prompt + request.sampling.max_tokens
        what = f"the prompt has {prompt} and max_tokens is {request.sampling.max_tokens}"
    if tokens > limit:
        raise ContextTooLong(f"the context holds {limit} tokens, but {what}")


class Overloaded(EngineError):
    """The queue is full.

    Attributes:
        retry_after: seconds after which a place is likely, from the measured rate of completions.
    """

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"the queue is full; try again in {retry_after:.0f} s")
        self.retry_after = retry_after


class Draining(EngineError):
    """The engine is not started, or is stopping; a request in hand fails with it when the drain is over."""


class OutOfTime(EngineError):
    """A request was not finished within `request_seconds` of its arrival."""


class EngineDied(EngineError):
    """The engine's thread ended without having been told to; nothing will be generated any more."""
