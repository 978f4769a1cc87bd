"""vLLM's OpenAI server as a reader: `prompt_logprobs` of `POST /v1/completions`."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from ttmark.detect_service.features.reader.dialect import Dialect, Origin, OriginNotRead, ReaderRequest
from ttmark.shared.byte_reading import (
    ByteReading,
    Content,
    Ints,
    InvalidReading,
    byte_ends,
    checked_logprobs,
    reading_windows,
)
from ttmark.shared.tokenization import TextTokenizer

_PATH = "v1/completions"
_FRAME_BYTES = 8_192
_TOKEN_BYTES = 1_024  # a token and the likeliest one, each with its text
# As the model says it: the server's defaults may be the filters of the model's generation_config.json.
_SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}


class _Part(NamedTuple):
    """A window of a text as vLLM is given it, and where its answer begins to count."""

    prompt: list[int]
    skipped: int


class _Text(NamedTuple):
    """What vLLM is given of a text, and where the text's tokens end."""

    parts: list[_Part]
    ends: Ints


def vllm_dialect(model: str, tokenizer: TextTokenizer, context_tokens: int) -> Dialect:
    """Asks a model of a vLLM server by the tokens of its own tokenizer.

    Args:
        context_tokens: of a text that are read together, the token that begins it included, 8 at least; the
            server's limit must be one more.
    """
    begin: list[int] = tokenizer.backend.encode("", add_special_tokens=True).ids[:1]

    def cut(text: str) -> _Text:
        encoded = tokenizer.encode_with_offsets(text)
        ids = encoded.ids
        windows = reading_windows(len(ids), context_tokens - len(begin)) if ids else ()
        parts = [_Part([*begin, *ids[at:end]], len(begin) + kept - at) for at, kept, end in windows]
        return _Text(parts, byte_ends(text, encoded.offsets))

    def question(texts: Sequence[Content], origin: Origin) -> ReaderRequest:
        if origin:
            raise OriginNotRead("a vLLM server has no filters to read a text with")
        asked = [cut(text) for text in texts if isinstance(text, str)]
        prompts = [part.prompt for text in asked for part in text.parts]
        body = {"model": model, "prompt": prompts, "max_tokens": 1, "prompt_logprobs": 1, **_SAMPLING}
        most = _FRAME_BYTES + sum(_TOKEN_BYTES * (1 + len(prompt)) for prompt in prompts)
        return ReaderRequest(_PATH, body, most, partial(_readings, asked))

    return question


def _readings(texts: Sequence[_Text], answer: Any) -> list[ByteReading]:
    said = iter(_by_index(answer, sum(len(text.parts) for text in texts)))
    readings = []
    for text in texts:
        values = [value for part in text.parts for value in _logprobs(part, next(said))]
        readings.append(ByteReading.of_tokens(text.ends, checked_logprobs(values)))
    return readings


def _by_index(answer: Any, count: int) -> list[Any]:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or len(choices) != count:
        raise InvalidReading("length")
    found = {}
    for choice in choices:
        if not isinstance(choice, dict) or not isinstance(choice.get("index"), int):
            raise InvalidReading("length")
        found[choice["index"]] = choice.get("prompt_logprobs")
    if set(found) != set(range(count)):
        raise InvalidReading("length")
    return [found[index] for index in range(count)]


def _logprobs(part: _Part, said: Any) -> list[Any]:
    """Of the tokens that count; None for one that nothing stands before."""
    if not isinstance(said, list) or len(said) != len(part.prompt):
        raise InvalidReading("length")
    values: list[Any] = []
    for token, entry in list(zip(part.prompt, said, strict=True))[part.skipped :]:
        own = entry.get(str(token)) if isinstance(entry, dict) else entry
        if own is not None and not isinstance(own, dict):
            raise InvalidReading("not_numbers")
        if isinstance(entry, dict) and own is None:
            raise InvalidReading("another_text")
        values.append(None if own is None else own.get("logprob", ""))
    return values
