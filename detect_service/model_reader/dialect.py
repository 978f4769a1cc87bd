"""How a reader is asked, and what its answer says."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ttmark.shared.byte_reading import ByteReading


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
