"""What extraction takes and gives: formats, limits, texts, and what can be wrong with a file.

UnreadableFile       the file is at fault
└── LimitExceeded    reading it would take more than the service gives to one file
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Literal, cast, get_args

from ttmark.shared.schemas.detection.extraction import ENDINGS, FILE_KINDS, PICTURES, ExtractedPart

MANIFEST = ":manifest"
"""In the place of a file's name: no name that a request can give has no ending."""
ALONE = ":mail"
"""The same, of a mail that is read without the files that came with it."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The text of a file.

    Attributes:
        encoding: of the file's characters, where the file is a text or a web page (`utf-8`, `windows-1252`).
        parts: of a file that holds several texts, each; `text` is empty then.
        title: of a mail, its subject and who sent it.
        unread: what of the file could not be read, in words.
        pages: of a PDF, where each page begins in the text, in characters.
        recognised: whether a machine read pictures.
    """

    text: str
    encoding: str | None = None
    parts: tuple[ExtractedPart, ...] = ()
    title: str | None = None
    unread: str | None = None
    pages: tuple[int, ...] = ()
    recognised: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionLimits:
    """Limits on reading files.

    Attributes:
        workers: processes that read files; each reads one at a time. A deployment chooses them by its cores
            and memory.
        queue: files that may wait for a process: whoever is last waits 40 s for two processes at worst.
        cpu_seconds: CPU time for a file: a web page of 2 MB can be made to take 87. A picture has 8 more.
        seconds: time for a file on the clock, waiting for a process not included: its CPU time on a core that
            six share. A picture or PDF has twice as much.
        memory_bytes: address space of a process: two have room in a container of 2 GiB.
        text_bytes: the text of a file, in UTF-8: ten times the longest document that is examined.
    """

    workers: int = 2
    queue: int = 16
    cpu_seconds: int = 5
    seconds: float = 30.0
    memory_bytes: int = 512 * 2**20
    text_bytes: int = 16 * 2**20


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
    "pixels",
    "text",
    "parts",
    "cpu",
    "memory",
    "time",
    "crash",
    "not_installed",
]


class UnreadableFile(Exception):
    """The file gives no text; the message says why for people, `reason` in one word for metrics."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class LimitExceeded(UnreadableFile):
    """Reading the file takes more than one file may take; the message names the limit."""


MOST_PARTS = 10_000
"""Texts of a file."""


def limited(parts: Iterable[ExtractedPart]) -> tuple[ExtractedPart, ...]:
    """The parts of a file, if there are not too many of them. Raises LimitExceeded: there are."""
    found = tuple(islice(parts, MOST_PARTS + 1))
    if len(found) > MOST_PARTS:
        raise LimitExceeded(
            f"The file holds more than {MOST_PARTS:,} texts. `ttmark jobs submit` takes larger ones, and "
            "`ttmark detect --bulk` bulk files of any size.",
            "parts",
        )
    return found


Format = Literal["text", "html", "docx", "odt", "rtf", "pdf", "epub", "eml", "mbox", "csv", "picture"]
FORMATS: tuple[Format, ...] = get_args(Format)
_OTHER_NAMES: dict[str, Format] = {"txt": "text", "md": "text", "markdown": "text", "htm": "html"}
_OTHER_NAMES |= dict.fromkeys(PICTURES, "picture")
FORMAT_OF_ENDING: Mapping[str, Format] = MappingProxyType(
    {f".{ending}": _OTHER_NAMES.get(ending) or cast(Format, ending) for ending in ENDINGS}
)
OF_SEVERAL: frozenset[Format] = frozenset({"mbox", "csv"})
"""Formats of files that hold several texts."""

_ENDING = re.compile(r"[^/](\.[A-Za-z]+)\Z")


def format_of(filename: str) -> Format:
    """The format that a file's name says. Raises UnreadableFile: none that can be read."""
    ending = _ENDING.search(filename)
    known = FORMAT_OF_ENDING.get(ending[1].lower()) if ending else None
    if known is None:
        raise UnreadableFile(f"Files can be {FILE_KINDS}.", "format")
    return known
