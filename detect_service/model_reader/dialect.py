"""How a service with a language model is asked, and what can go wrong."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ttmark.shared.byte_reading import ByteReading


class ReaderError(Exception):
    """There is no reading; the message names no text and no secret."""


class ReaderDown(ReaderError):
    """The reader does not answer, or not in time, or is left alone because it did not before."""


class ReaderRefused(ReaderError):
    """The reader is there and does not read these texts."""


class ReaderElsewhere(ReaderError):
    """The reader's address is not one that texts may be sent to."""


class Question(NamedTuple):
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


class Dialect(Protocol):
    """The API of one kind of reader; pure, and called in threads."""

    def question(self, texts: Sequence[str]) -> Question:
        """What asks for readings of the texts."""
