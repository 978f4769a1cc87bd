"""The text of mails: one (eml), and those of a mailbox (mbox), each a text of its own."""

import codecs
import re
from dataclasses import replace
from email import message_from_bytes, policy

from ttmark.detect_service.extraction.encodings import decode
from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile
from ttmark.detect_service.extraction.html_text import html_text
from ttmark.shared.schemas.extraction import ExtractedPart


def eml_text(content: bytes) -> Extraction:
    """The plain body, or what the web page in its place shows; line ends as on this system.

    Raises:
        UnreadableFile: not a mail, without a text, or the encoding cannot be told.
        LimitExceeded: a web page in it is nested deeper than 256 levels.
    """
    try:
        mail = message_from_bytes(content, policy=policy.default)
        body = mail.get_body(("plain", "html")) if mail.keys() else None
        if body is not None:
            kind, charset = body.get_content_subtype(), body.get_content_charset()
            # `get_content` would put question marks in the place of what it cannot read.
            raw = body.get_payload(decode=True)
    except MemoryError:
        raise
    except RecursionError:
        raise LimitExceeded("The mail's parts are nested too deep.", "nesting") from None
    except Exception:  # the library raises whatever a damaged header leads to
        raise _not_a_mail() from None
    if not mail.keys():
        raise _not_a_mail()
    if body is None or not isinstance(raw, bytes):
        raise UnreadableFile("The mail has no text in its body.", "no_text")
    text, encoding = decode(raw, _codec(charset))
    title = _title(content)
    if kind == "html":
        return replace(html_text(text.encode("utf-8")), title=title)
    return Extraction(text.replace("\r\n", "\n"), encoding, title=title)


def _not_a_mail() -> UnreadableFile:
    return UnreadableFile("The file is not a mail (eml) that can be read.", "damaged")


def _codec(charset: str | None) -> str | None:
    """Python's name of an encoding that a mail names; None: of none that is known."""
    try:
        name = codecs.lookup(charset).name if charset else None
    except (LookupError, ValueError):
        return None
    return None if name == "ascii" else name


# A line of its own before each mail (RFC 4155); in a mail such a line begins with `>`.
_BETWEEN = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_LONGEST = 100


def mbox_text(content: bytes) -> Extraction:
    """Each mail as `eml_text` reads it, by its number, subject and sender; one without a text says why.

    Raises:
        UnreadableFile: not a mailbox.
    """
    before, *mails = _BETWEEN.split(content)
    if before.strip() or not mails:
        raise UnreadableFile("The file is not a mailbox (mbox) that can be read.", "damaged")
    return Extraction(
        "", parts=tuple(_part(number, _QUOTED.sub(rb"\1", mail)) for number, mail in enumerate(mails, 1))
    )


def _part(number: int, mail: bytes) -> ExtractedPart:
    name = f"{number}: {_title(mail) or ''}".removesuffix(": ")
    try:
        return ExtractedPart(name=name, text=eml_text(mail).text)
    except LimitExceeded:
        raise
    except UnreadableFile as error:
        return ExtractedPart(name=name, text="", problem=str(error))


def _title(mail: bytes) -> str | None:
    """Subject and sender, as far as the head can be read; None: neither."""
    said = [shown for name in ("Subject", "From") if (shown := _header(mail, name))]
    return " · ".join(said) or None


def _header(mail: bytes, name: str) -> str:
    try:
        head = message_from_bytes(re.split(rb"\r?\n\r?\n", mail, maxsplit=1)[0], policy=policy.default)
        return " ".join(str(head.get(name, "")).split())[:_LONGEST]
    except MemoryError:
        raise
    except Exception:  # the library raises whatever a damaged header leads to
        return ""
