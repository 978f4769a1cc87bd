"""What decoding raises."""

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


class SequenceFailed(Exception):
    """One request failed while it was being generated; its neighbours are not affected."""

    @classmethod
    def because(cls, error: Exception) -> "SequenceFailed":
        """The failure that an unexpected error makes; one of its own stays as it is."""
        if isinstance(error, cls):
            return error
        failure = cls(f"{type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure

    @property
    def origin(self) -> str:
        """Type and place of the error behind it, for logs: messages may hold what must not be logged."""
        error: BaseException = self.__cause__ or self
        frames = traceback.extract_tb(error.__traceback__)
        where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"{type(error).__name__}{where}"


def each_or_failed(compute: Callable[[Sequence[A]], list[R]], items: Sequence[A]) -> list[R | SequenceFailed]:
    """What `compute` makes of all items at once; if that fails, of each alone: its result or its failure."""
    try:
        return [*compute(items)]
    except Exception as error:
        if len(items) == 1:
            return [SequenceFailed.because(error)]
        return [result for item in items for result in each_or_failed(compute, [item])]
