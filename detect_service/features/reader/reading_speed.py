"""How long readings of a tenant's texts take, going by those of late."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Sequence

from ttmark.shared.byte_reading import Content, content_bytes

_A_TEXT = 200  # what one costs beside its bytes, in bytes
_KEPT, _USUAL, _TURNS = 64, 0.95, 2
# For how long it is remembered how long readings take, and that some cannot be read in time.
LATELY_SECONDS, TOO_SLOW_SECONDS = 60.0, 5.0


def cost(sizes: Sequence[int]) -> int:
    """Of texts of so many bytes, in bytes."""
    return sum(sizes) + _A_TEXT * len(sizes)


def cost_of(texts: Sequence[Content]) -> int:
    return cost([len(content_bytes(text)) for text in texts])


class TenantReadings:
    """Of the texts of one line, with their wait in it: when, seconds, and cost.

    Attributes:
        turns: held by what is at the reader, or waits for a place there: so few that others are soon served.
        rests_until: nothing is sent before; `time.monotonic`.
    """

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(_TURNS)
        self.rests_until = 0.0
        self._readings: deque[tuple[float, float, int]] = deque(maxlen=_KEPT)

    def add(self, seconds: float, cost: int) -> None:
        self._readings.append((time.monotonic(), seconds, cost))

    def rate(self) -> float | None:
        """Seconds a byte that 19 of 20 readings kept to; None: there were none."""
        since = time.monotonic() - LATELY_SECONDS
        rates = sorted(seconds / cost for at, seconds, cost in self._readings if at >= since)
        return rates[math.ceil(_USUAL * len(rates)) - 1] if rates else None

    def at_least(self, cost: int) -> float:
        """Seconds below which half of those that cost about as much or more say that this is not read.

        What only less was read of is not known to be slow.
        """
        since = time.monotonic() - TOO_SLOW_SECONDS
        like = [one for one in self._readings if one[0] >= since and one[2] >= cost / 2]
        times = sorted(seconds * min(1.0, cost / own) for _, seconds, own in like)
        return times[math.ceil(len(times) / 2) - 1] if times else 0.0
