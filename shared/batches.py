"""Batches of things that go together as far as there is room for them."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches(
    items: Iterable[T], size: Callable[[T], int], most: int, *, count: float = math.inf
) -> Iterator[list[T]]:
    """Items in their order whose sizes come to no more than `most`; one that is larger goes alone.

    Args:
        count: most items of a batch.
    """
    batch: list[T] = []
    room = most
    for item in items:
        own = size(item)
        if batch and (own > room or len(batch) >= count):
            yield batch
            batch, room = [], most
        batch.append(item)
        room -= own
    if batch:
        yield batch
