"""Plain text and Markdown."""

import codecs

from detect_service.extraction.errors import UnreadableFile


def plain_text(content: bytes) -> str:
    """UTF-8, or UTF-16 with a byte order mark; the mark is no part of the text.

    Raises:
        UnreadableFile: neither.
    """
    utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFile("The file is not a text in UTF-8.") from None
