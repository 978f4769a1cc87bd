"""What can be wrong with a file.

UnreadableFile       the file is at fault
└── LimitExceeded    reading it would take more than the service gives to one file
"""

from typing import Literal

Reason = Literal[
    "format",
    "damaged",
    "encoding",
    "protected",
    "no_text",
    "unpacked",
    "nesting",
    "cells",
    "pages",
    "text",
    "cpu",
    "memory",
    "time",
    "crash",
]


class UnreadableFile(Exception):
    """The file gives no text; the message says why, for the person who sent it.

    Attributes:
        reason: the same in one word, for metrics.
    """

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class LimitExceeded(UnreadableFile):
    """Reading the file takes more than one file may take; the message names the limit."""
