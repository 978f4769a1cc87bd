"""The formats that are read, by the endings of names."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from ttmark.detect_service.extraction.unreadable_file import UnreadableFile

Format = Literal["text", "html", "docx", "pdf"]
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
        ".pdf": "pdf",
    }
)

_ENDING = re.compile(r"[^/](\.[A-Za-z]+)\Z")


def format_of(filename: str) -> Format:
    """The format that a file's name says.

    Raises:
        UnreadableFile: none that can be read.
    """
    ending = _ENDING.search(filename)
    known = FORMAT_OF_ENDING.get(ending[1].lower()) if ending else None
    if known is None:
        raise UnreadableFile("Files can be txt, md, html, docx or pdf.", "format")
    return known
