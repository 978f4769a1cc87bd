"""The unit in which tokens go into the cache."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens [start, stop) of a sequence that one pass appends to the cache together.

    A prompt is cut at multiples of the chunk size and a completion where it was sampled, always in the same
    places, so that computing a sequence again after a preemption repeats the same arithmetic.
    """

    start: int
    stop: int
    is_chunk: bool
