"""Chooses the reader by the file's name."""

from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType

from detect_service.extraction.errors import UnreadableFile
from detect_service.extraction.html_text import html_text
from detect_service.extraction.plain_text import plain_text


def _docx_text(content: bytes) -> str:
    # Imported for the first such file: a service must be ready soon.
    from detect_service.extraction.docx_text import docx_text

    return docx_text(content)


_READERS: Mapping[str, Callable[[bytes], str]] = MappingProxyType(
    {
        ".txt": plain_text,
        ".text": plain_text,
        ".md": plain_text,
        ".markdown": plain_text,
        ".html": html_text,
        ".htm": html_text,
        ".docx": _docx_text,
    }
)


def extract_text(filename: str, content: bytes) -> str:
    """The text of a file as its reader sees it.

    Raises:
        UnreadableFile: another kind of file than the name says, damaged, or of a kind that is not supported.
    """
    reader = _READERS.get(PurePath(filename).suffix.lower())
    if reader is None:
        raise UnreadableFile("Files can be txt, md, html or docx.")
    # A lone surrogate has no UTF-8 form, so an answer that holds one could not be sent.
    return reader(content).encode("utf-8", "replace").decode("utf-8")
