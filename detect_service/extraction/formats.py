"""The formats that are read, by the endings of names."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from ttmark.detect_service.extraction.extraction import UnreadableFile
from ttmark.shared.schemas.extraction import FILE_KINDS

Format = Literal["text", "html", "docx", "odt", "rtf", "pdf", "epub", "eml", "mbox", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
FORMAT_OF_ENDING: Mapping[str, Format] = MappingProxyType(
    {
        ".txt": "text",
        ".text": "text",
        ".md": "text",
        ".markdown": "text",
        ".html": "html",
        ".htm": "html",
        ".docx": "docx",
        ".odt": "odt",
        ".rtf": "rtf",
        ".pdf": "pdf",
        ".epub": "epub",
        ".eml": "eml",
        ".mbox": "mbox",
        ".csv": "csv",
    }
)
OF_SEVERAL: frozenset[Format] = frozenset({"mbox", "csv"})
"""Formats of files that hold several texts."""

_ENDING = re.compile(r"[^/](\.[A-Za-z]+)\Z")


def format_of(filename: str) -> Format:
    """The format that a file's name says.

    Raises:
        UnreadableFile: none that can be read.
    """
    ending = _ENDING.search(filename)
    known = FORMAT_OF_ENDING.get(ending[1].lower()) if ending else None
    if known is None:
        raise UnreadableFile(f"Files can be {FILE_KINDS}.", "format")
    return known
