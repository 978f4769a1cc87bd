"""What torch's CPU generator draws after `manual_seed`, without torch: the 32-bit Mersenne Twister of 2002.

`torch.randint` and `torch.randperm` take one word for each draw, modulo the number of possible values.
"""

from threading import local

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.interruption import paused_ranges

Words = NDArray[np.int64]


class _OfThread(local):
    """Seeding a twister takes a fiftieth of the time of making one, and two threads must not share it."""

    def __init__(self) -> None:
        self.twister = np.random.RandomState(0)


_of_thread = _OfThread()


def _words(seed: int, count: int) -> NDArray[np.uint32]:
    """The first `count` words after `manual_seed(seed)`; the low 32 bits of the seed alone count."""
    twister = _of_thread.twister
    twister.seed(seed & 0xFFFFFFFF)
    return twister.randint(0, 1 << 32, size=count, dtype=np.uint32)


def randint(seed: int, high: int, count: int) -> Words:
    """`torch.randint(high, (count,))`."""
    drawn: Words = _words(seed, count).astype(np.int64) % high
    return drawn


def randperm(seed: int, size: int) -> Words:
    """`torch.randperm(size)`, for a size below 2**32 / 20."""
    order = list(range(size))
    targets = _targets(seed, size, size).tolist()
    for first, last in paused_ranges(0, len(targets)):
        for place in range(first, last):
            target = targets[place]
            order[place], order[target] = order[target], order[place]
    return np.array(order, dtype=np.int64)


class Permutation:
    """The first `head` places of `torch.randperm(size)`: which values lie there, without making it."""

    def __init__(self, seed: int, size: int, head: int) -> None:
        self._head = head
        self._targets = _targets(seed, size, head)

    def holds(self, value: int) -> bool:
        """Whether `value` lies in the head.

        A shuffle exchanges place i with a later one for i = 0, 1, ...: a value stays where it is until its
        place is exchanged. An exchange with an earlier place settles it there, its own turn moves it back.
        """
        place, turn = value, 0
        while True:
            if (self._targets[turn:place] == place).any():
                return True
            if place >= self._targets.size:
                return place < self._head
            turn, place = place + 1, int(self._targets[place])
            if place == turn - 1:
                return True


def _targets(seed: int, size: int, head: int) -> Words:
    """With which place each of the first `head` is exchanged; the last of all is exchanged with none."""
    steps = np.arange(min(head, size - 1))
    ahead = (size - steps).astype(np.uint32)  # in 32 bits a remainder takes half the time
    targets: Words = steps + _words(seed, steps.size) % ahead
    return targets
