"""The text of mails: one (eml), and those of a mailbox (mbox), each a text of its own."""

import re
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage

from ttmark.detect_service.extraction.encodings import codec, decode
from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile, limited
from ttmark.detect_service.extraction.html_text import html_text
from ttmark.shared.schemas.extraction import ExtractedPart


def eml_text(content: bytes) -> Extraction:
    """The plain texts of the body, or what the web pages in their place show; line ends as on this system.

    Raises:
        UnreadableFile: not a mail, without a text, or the encoding cannot be told.
        LimitExceeded: a web page in it is nested deeper than 256 levels.
    """
    try:
        mail = message_from_bytes(content, policy=policy.default)
        if not mail.keys():
            raise _not_a_mail()
        read = list(_texts(mail))
    except (MemoryError, UnreadableFile):
        raise
    except RecursionError:
        raise LimitExceeded("The mail's parts are nested too deep.", "nesting") from None
    except Exception:  # the library raises whatever a damaged header leads to
        raise _not_a_mail() from None
    said = [part for part in read if part.text.strip()]
    if not read or (not said and len(read) > 1):
        raise UnreadableFile("The mail has no text in its body.", "no_text")
    first, *others = said or read
    text = first.text
    for part in others:
        text = text.rstrip("\n") + "\n\n" + part.text.lstrip("\n")
    unread = next((part.unread for part in read if part.unread), None)
    return replace(first, text=text, title=_title(content), unread=unread)


def _texts(part: EmailMessage) -> Iterator[Extraction]:
    """What a mail program shows of a part, without attachments."""
    parts = [inner for inner in part.iter_parts() if isinstance(inner, EmailMessage)]
    if part.get_content_type() == "multipart/alternative":
        # The plain one comes first, as it should by the standard.
        ways = [list(_texts(inner)) for inner in parts]
        said = [way for way in ways if any(each.text.strip() for each in way)]
        yield from (said or ways or [[]])[0]
    elif part.get_content_type() == "multipart/related":
        yield from _texts(parts[0]) if parts else ()
    elif part.get_content_maintype() == "multipart":
        for inner in parts:
            yield from _texts(inner)
    elif part.get_content_type() in ("text/plain", "text/html") and not part.is_attachment():
        # `get_content` would put question marks in the place of what it cannot read.
        raw = part.get_payload(decode=True)
        if isinstance(raw, bytes):
            yield _text(raw, part)


def _text(raw: bytes, part: EmailMessage) -> Extraction:
    decoded = decode(raw, codec(part.get_content_charset()))
    if part.get_content_subtype() != "html":
        return Extraction(decoded.text.replace("\r\n", "\n"), decoded.encoding, unread=decoded.unread)
    if not decoded.text.strip():
        return Extraction("", decoded.encoding)
    return replace(html_text(decoded.text.encode("utf-8")), unread=decoded.unread)


def _not_a_mail() -> UnreadableFile:
    return UnreadableFile("The file is not a mail (eml) that can be read.", "damaged")


# A line of its own before each mail (RFC 4155); in a mail such a line begins with `>`. Older mailboxes have
# no empty line before it, but a date in it, or (MMDF) lines of four control characters around a mail.
_DAY, _MONTH = "Mon|Tue|Wed|Thu|Fri|Sat|Sun", "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_BETWEEN = re.compile(
    rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n"
    rb"|^From \S{1,320} +(?:%b) (?:%b) [ 0-9]?[0-9] [0-9]{1,2}:[0-9]{2}[^\n]{0,60}\n|(?:^\x01{4}\r?\n)+"
    % (_DAY.encode(), _MONTH.encode()),
    re.MULTILINE,
)
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_LONGEST = 100


def mbox_text(content: bytes) -> Extraction:
    """Each mail as `eml_text` reads it, by its number, subject and sender; one without a text says why.

    Raises:
        UnreadableFile: not a mailbox.
    """
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    before, *mails = _BETWEEN.split(content)
    if before.strip() or not mails:
        raise UnreadableFile("The file is not a mailbox (mbox) that can be read.", "damaged")
    mails = [mail for mail in mails if mail.strip()]
    parts = (_part(number, _QUOTED.sub(rb"\1", mail)) for number, mail in enumerate(mails, 1))
    return Extraction("", parts=limited(parts))


def _part(number: int, mail: bytes) -> ExtractedPart:
    name = f"{number}: {_title(mail) or ''}".removesuffix(": ")
    try:
        found = eml_text(mail)
        return ExtractedPart(name=name, text=found.text, unread=found.unread)
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
