"""How a service with a language model is asked, first of all the generation service; its errors."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ttmark.shared.byte_reading import ByteReading, Content, InvalidReading, content_bytes


class ReaderError(Exception):
    """There is no reading; the message names no text and no secret. `outcome`: what it is counted as."""

    outcome = "failed"


class ReaderDown(ReaderError):
    """The reader does not answer, or not in time."""


class TokenRefused(ReaderDown):
    """The reader does not take the token that it is asked with."""


class ReaderBusy(ReaderError):
    """The reader is well and has no time. `seconds`: after which it may be asked again."""

    outcome = "busy"

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class ReaderRefused(ReaderError):
    """The reader is there and does not read these texts."""

    outcome = "refused"


class OriginNotRead(ReaderRefused):
    """Readers of this kind read texts after nothing, as the model says them, and no token ids."""


class ReaderElsewhere(ReaderError):
    """The reader's address is not one that texts may be sent to."""


class ReaderRequest(NamedTuple):
    """A POST to a reader.

    Attributes:
        path: below the reader's address.
        most_bytes: of a true answer.
        readings: what an answer, parsed JSON of any shape, says of each text; raises `InvalidReading` where
            it cannot be said of them.
    """

    path: str
    body: dict[str, Any]
    most_bytes: int
    readings: Callable[[Any], list[ByteReading]]


Origin = Mapping[str, Any]
"""What texts are supposed to continue, and their sampling, as fields of `/v1/readings`; empty: nothing is."""

Dialect = Callable[[Sequence[Content], Origin], ReaderRequest]
"""What asks one kind of reader for readings of texts; pure, and called in threads.

Raises `OriginNotRead` where the kind has no way to ask so.
"""
_PATH = "v1/readings"
_FRAME_BYTES = 4_096
_TEXT_BYTES = 512
_PART_BYTES = 64  # a part has a byte at least, and two places and a number in the answer


def ttmark_dialect(model: str) -> Dialect:
    def question(texts: Sequence[Content], origin: Origin) -> ReaderRequest:
        size = sum(len(content_bytes(text)) for text in texts)
        most = _FRAME_BYTES + _TEXT_BYTES * len(texts) + _PART_BYTES * size
        body = {"model": model, "texts": list(texts), **origin}
        return ReaderRequest(_PATH, body, most, partial(_readings, texts))

    return question


def _readings(texts: Sequence[Content], answer: Any) -> list[ByteReading]:
    found = answer.get("readings") if isinstance(answer, dict) else None
    if not isinstance(found, list) or len(found) != len(texts):
        raise InvalidReading("length")
    return [_reading(*each) for each in zip(texts, found, strict=True)]


def _reading(text: Content, said: Any) -> ByteReading:
    content = content_bytes(text)
    if not isinstance(said, dict) or said.get("sha256") != hashlib.sha256(content).hexdigest():
        raise InvalidReading("another_text")
    starts, ends, logprobs = (said.get(name) for name in ("starts", "ends", "logprobs"))
    if not (isinstance(starts, list) and isinstance(ends, list) and isinstance(logprobs, list)):
        raise InvalidReading("not_numbers")
    return ByteReading.checked(starts, ends, logprobs, len(content))
