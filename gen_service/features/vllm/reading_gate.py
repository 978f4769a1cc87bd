"""Which readings vLLM is given: what it has it computes, beside whatever is written."""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from ttmark.gen_service.engine.scheduling.fair_share import ReadingShare

_AHEAD = 2_048
"""Rows of readings that vLLM may have in hand while nothing is written."""


class GatedReading(Protocol):
    """A text that is to be read.

    Attributes:
        tokens: that are computed.
    """

    tokens: list[int]

    @property
    def tenant(self) -> str:
        """Whose it is."""


R = TypeVar("R", bound=GatedReading)


class ReadingGate(Generic[R]):
    """Holds readings back until they are due; a reading is let through as a whole.

    While something is written a reading waits until its rows have been earned, and while nothing is, until
    those before it leave few enough in hand: whoever comes to write finds no more than that before him.
    """

    def __init__(self, share: float) -> None:
        self._share = ReadingShare(share)
        self._waiting: deque[R] = deque()
        self._through: set[R] = set()

    def add(self, reading: R) -> None:
        self._waiting.append(reading)

    def remove(self, reading: R) -> None:
        """A reading is over, or has been given up; nothing if it is none of these."""
        self._through.discard(reading)
        if reading in self._waiting:
            self._waiting.remove(reading)

    def wrote(self, rows: int) -> None:
        """A step has computed so many rows of what is written."""
        self._share.write(rows)

    def due(self, *, writing: bool) -> Iterator[R]:
        """Lets through what is due; `writing` says whether something is to be written."""
        self._share.settle(writing=writing, reading=bool(self._waiting or self._through))
        while self._waiting:
            held = Counter(each.tenant for each in self._through)
            reading = min(self._waiting, key=lambda each: held[each.tenant])
            rows, in_hand = len(reading.tokens), sum(len(each.tokens) for each in self._through)
            if rows > self._share.credit if writing else in_hand and in_hand + rows > _AHEAD:
                return
            self._waiting.remove(reading)
            self._through.add(reading)
            self._share.read(rows)
            yield reading
