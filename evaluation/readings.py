"""In which ways a detector reads a text: as it was sent, and perhaps without what a reader does not see."""

from collections.abc import Callable, Sequence

Readings = Callable[[str], Sequence[str]]
"""The texts that the detection reads for one that was sent, that one first; p-values pay for their number."""


def as_sent(text: str) -> Sequence[str]:
    """One reading."""
    return (text,)
