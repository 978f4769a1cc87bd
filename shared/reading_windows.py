"""How a text that is longer than a model's context is read: in windows that overlap."""

from collections.abc import Iterator
from typing import NamedTuple


class Window(NamedTuple):
    """Tokens [start, end) that are read together, of which those from `kept` on are used."""

    start: int
    kept: int
    end: int


def reading_windows(tokens: int, size: int) -> Iterator[Window]:
    """Windows of at most `size` tokens; each but the first begins with a quarter that is context alone.

    Every token is kept once: the first window keeps all of its own, and later tokens have a quarter of a
    window before them at least.

    Args:
        tokens: of the text.
        size: at least 1.
    """
    overlap, start = size // 4, 0
    while start + overlap < tokens or not start:
        end = min(start + size, tokens)
        yield Window(start, start + overlap if start else 0, end)
        if end == tokens:
            return
        start += size - overlap
