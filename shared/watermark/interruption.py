"""Where a long computation can be interrupted: what runs it may let others go first, or give it up.

Loops call `pause` every few milliseconds. Neither call changes a result, and without `interruptible` around
them they do nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
# Steps of a loop in Python between two calls of `pause`: about two milliseconds.
STEPS = 8192


class Interrupter(Protocol):
    """What runs a computation that can be interrupted."""

    def pause(self) -> None:
        """May take a while, and may raise what ends the computation, which is no Exception."""

    def aside(self) -> AbstractContextManager[None]:
        """Surrounds a call that cannot be interrupted: others may go on meanwhile."""


class MadeOnce(Generic[T]):
    """A property whose value is made when it is first asked for, on the way to which there may be pauses.

    `functools.cached_property` of Python 3.11 makes the values of all instances under one lock: who paused
    would keep it from those that have the turn, and none would go on.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> T:
        value: T = self._make(instance)
        instance.__dict__[self._name] = value  # which is found before this descriptor from now on
        return value


_interrupter: ContextVar[Interrupter | None] = ContextVar("interrupter", default=None)


@contextmanager
def interruptible(interrupter: Interrupter) -> Iterator[None]:
    """Has `interrupter` asked at each pause of this thread inside the block."""
    token = _interrupter.set(interrupter)
    try:
        yield
    finally:
        _interrupter.reset(token)


def pause() -> None:
    """A place to interrupt a computation at."""
    interrupter = _interrupter.get()
    if interrupter is not None:
        interrupter.pause()


def aside() -> AbstractContextManager[None]:
    """Surrounds a long call into a library that has no place to interrupt it at."""
    interrupter = _interrupter.get()
    return nullcontext() if interrupter is None else interrupter.aside()


def paused_ranges(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Splits a range into runs of at most STEPS, with a pause before each."""
    for first in range(start, stop, STEPS):
        pause()
        yield first, min(first + STEPS, stop)
