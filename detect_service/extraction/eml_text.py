"""The text of a mail (eml): what its sender wrote, without headers and attachments."""

import codecs
from email import message_from_bytes, policy
from email.message import MIMEPart

from ttmark.detect_service.extraction.encodings import decode
from ttmark.detect_service.extraction.extraction import Extraction
from ttmark.detect_service.extraction.html_text import html_text
from ttmark.detect_service.extraction.unreadable_file import LimitExceeded, UnreadableFile


def eml_text(content: bytes) -> Extraction:
    """The plain body, or what the web page in its place shows; line ends as on this system.

    Raises:
        UnreadableFile: not a mail, without a text, or the encoding cannot be told.
        LimitExceeded: a web page in it is nested deeper than 256 levels.
    """
    body = _body(content)
    if body is None:
        raise UnreadableFile("The mail has no text in its body.", "no_text")
    # `get_content` would put question marks in the place of what it cannot read.
    payload = body.get_payload(decode=True)
    raw = payload if isinstance(payload, bytes) else b""
    text, encoding = decode(raw, _codec(body.get_content_charset()))
    if body.get_content_subtype() == "html":
        return html_text(text.encode("utf-8"))
    return Extraction(text.replace("\r\n", "\n"), encoding)


def _body(content: bytes) -> MIMEPart | None:
    try:
        mail = message_from_bytes(content, policy=policy.default)
        if not mail.keys():
            raise UnreadableFile("The file is not a mail (eml) that can be read.", "damaged")
        return mail.get_body(("plain", "html"))
    except RecursionError:
        raise LimitExceeded("The mail's parts are nested too deep.", "nesting") from None
    except (ValueError, LookupError, AttributeError, TypeError, IndexError):  # of damaged headers
        raise UnreadableFile("The file is not a mail (eml) that can be read.", "damaged") from None


def _codec(charset: str | None) -> str | None:
    """Python's name of an encoding that a mail names; None: of none that is known."""
    try:
        name = codecs.lookup(charset).name if charset else None
    except LookupError:
        return None
    return None if name == "ascii" else name
