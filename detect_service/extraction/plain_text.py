"""Plain text and Markdown."""

from ttmark.detect_service.extraction.encodings import decode
from ttmark.detect_service.extraction.extraction import Extraction


def plain_text(content: bytes) -> Extraction:
    """The characters of the file; a byte order mark is no part of the text.

    Raises:
        UnreadableFile: the encoding cannot be told.
    """
    return Extraction(*decode(content))
