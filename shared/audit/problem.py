"""What is wrong with a chain."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """The first record of a chain that is not what was written.

    Attributes:
        sequence: its number, or that of the first that is missing.
        place: file and line, where there is one.
    """

    chain: str
    sequence: int
    what: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.chain}, record {self.sequence}: {self.what}{f' ({self.place})' if self.place else ''}"
