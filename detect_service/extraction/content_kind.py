"""What kind of file some bytes are: their own word counts more than the file's name."""

import re
from pathlib import PurePath

from ttmark.detect_service.extraction.encodings import is_binary
from ttmark.detect_service.extraction.extraction import FORMAT_OF_ENDING

_BEGINNINGS = (
    (b"%PDF-", ".pdf"),
    (b"{\\rtf", ".rtf"),
    (b"\x89PNG\r\n\x1a\n", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"II*\0", ".tif"),
    (b"MM\0*", ".tif"),
)
_ZIP = b"PK\x03\x04"
# Of books and OpenDocument texts the first file inside says what they are, uncompressed.
_MIMETYPE = slice(30, 38), b"mimetype"
_INSIDE = (
    (b"application/vnd.oasis.opendocument.text", ".odt"),
    (b"application/epub+zip", ".epub"),
)
_PAGE = re.compile(rb"(?:<!--.{0,200}?-->|\s)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.S)
_MAILBOX = re.compile(rb"From \S{1,320} [^\n]{0,99}\d{4}[^\n]{0,60}\n")
# Two lines of a head that mails have: one alone can be a line of a text.
_HEAD = rb"(?:Received|Return-Path|Delivered-To|From|To|Cc|Subject|Date|Message-ID|MIME-Version|Content-Type)"
_MAIL = re.compile(rb"(?:%b:[^\n]{0,2000}\n(?:[ \t][^\n]{0,2000}\n){0,50}){2}" % _HEAD, re.IGNORECASE)
_TEXTS = ("text", "csv", None)  # None: an ending that nobody knows


def named_by_content(filename: str | None, content: bytes) -> str:
    """A name with the ending of what the bytes are, else with its own.

    Without an ending that is known, a web page, a mail and a mailbox are told by how they begin, and all else
    is plain text. What is binary and of no kind that is read gets an ending that nobody reads.
    """
    ending = PurePath(filename or "").suffix.lower()
    shown = _shown(content)
    if shown is not None:
        return f"file{shown}"
    kind = FORMAT_OF_ENDING.get(ending)
    if kind in _TEXTS and (content.startswith(_ZIP) or is_binary(content)):
        return "file.binary"
    if kind is not None:
        return f"file{ending}"
    head = content.removeprefix(b"\xef\xbb\xbf")
    for pattern, guessed in ((_PAGE, ".html"), (_MAILBOX, ".mbox"), (_MAIL, ".eml")):
        if pattern.match(head):
            return f"file{guessed}"
    return "file.txt"


def _shown(content: bytes) -> str | None:
    """The ending of the format that the first bytes show, if they show one."""
    for beginning, ending in _BEGINNINGS:
        if content.startswith(beginning):
            return ending
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return ".webp"
    if not content.startswith(_ZIP):
        return None
    place, word = _MIMETYPE
    if content[place] == word:
        return next((ending for kind, ending in _INSIDE if content[38:].startswith(kind)), None)
    return ".docx" if b"word/document" in content else None
