"""The text of mails: one (eml) with the files that came with it, and those of a mailbox (mbox)."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import partial
from pathlib import PurePath

from ttmark.detect_service.features.files.formats.html_text import html_text
from ttmark.detect_service.features.files.text.encodings import codec, decode
from ttmark.detect_service.features.files.text.extraction import (
    FORMAT_OF_ENDING,
    OF_SEVERAL,
    Extraction,
    LimitExceeded,
    UnreadableFile,
    limited,
)
from ttmark.shared.schemas.detection.extraction import ExtractedPart


def eml_text(content: bytes, read_file: Callable[[str, bytes], Extraction] | None = None) -> Extraction:
    """The plain texts of the body, or what the web pages in their place show; line ends as on this system.

    Args:
        read_file: by its name. Where files came with the mail, their texts and the body are then parts.

    Raises:
        UnreadableFile: not a mail, without a text, or the encoding cannot be told.
        LimitExceeded: a web page in it is nested deeper than 256 levels, or a file takes more than it may.
    """
    try:
        mail = message_from_bytes(content, policy=policy.default)
        if not mail.keys():
            raise _not_a_mail()
        read, files = list(_texts(mail)), list(_files(mail))
    except (MemoryError, UnreadableFile):
        raise
    except RecursionError:
        raise LimitExceeded("The mail's parts are nested too deep.", "nesting") from None
    except Exception:  # the library raises whatever a damaged header leads to
        raise _not_a_mail() from None
    if read_file is None or not files:
        return _body(read, content)
    parts = [*_parts(_title(content) or "mail", partial(_body, read, content))]
    for name, file in files:
        found = _parts(name, partial(read_file, name, file))
        parts += [one.model_copy(update={"attachment": True}) for one in found]
    return Extraction("", parts=limited(parts))


def _body(read: Sequence[Extraction], content: bytes) -> Extraction:
    said = [part for part in read if part.text.strip()]
    if not read or (not said and len(read) > 1):
        raise UnreadableFile("The mail has no text in its body.", "no_text")
    first, *others = said or read
    text = first.text
    for part in others:
        text = text.rstrip("\n") + "\n\n" + part.text.lstrip("\n")
    unread = next((part.unread for part in read if part.unread), None)
    return replace(first, text=text, title=_title(content), unread=unread)


def _files(part: EmailMessage) -> Iterator[tuple[str, bytes]]:
    """Files of formats that are read, with their names, and mails that came as files."""
    if part.get_content_type() == "message/rfc822":
        yield from (("mail.eml", mail.as_bytes()) for mail in part.iter_parts())
        return
    for inner in part.iter_parts():
        yield from _files(inner) if isinstance(inner, EmailMessage) else ()
    name, content = part.get_filename("")[-_LONGEST:], part.get_payload(decode=True)
    is_read = FORMAT_OF_ENDING.get(PurePath(name).suffix.lower()) not in (None, *OF_SEVERAL)
    is_body = part.get_content_maintype() in ("text", "image") and not part.is_attachment()
    if is_read and not is_body and isinstance(content, bytes):
        yield name, content


def _texts(part: EmailMessage) -> Iterator[Extraction]:
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
    """Each mail as `eml_text` reads it, by number, subject and sender. Raises UnreadableFile: no mailbox."""
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    before, *mails = _BETWEEN.split(content)
    if before.strip() or not mails:
        raise UnreadableFile("The file is not a mailbox (mbox) that can be read.", "damaged")
    mails = [mail for mail in mails if mail.strip()]
    names = (f"{number}: {_title(mail) or ''}".removesuffix(": ") for number, mail in enumerate(mails, 1))
    each = zip(names, (_QUOTED.sub(rb"\1", mail) for mail in mails), strict=True)
    return Extraction(
        "", parts=limited(one for name, mail in each for one in _parts(name, partial(eml_text, mail)))
    )


def _parts(name: str, read: Callable[[], Extraction]) -> Iterator[ExtractedPart]:
    try:
        found = read()
    except LimitExceeded:
        raise
    except UnreadableFile as error:
        yield ExtractedPart(name=name, text="", problem=str(error))
    else:
        yield from found.parts or [ExtractedPart(name=name, text=found.text, unread=found.unread)]


def _title(mail: bytes) -> str | None:
    """Subject and sender, as far as the head can be read; None: neither."""
    head, said = re.split(rb"\r?\n\r?\n", mail, maxsplit=1)[0], []
    for name in ("Subject", "From"):
        try:
            value = str(message_from_bytes(head, policy=policy.default).get(name, ""))
        except MemoryError:
            raise
        except Exception:  # the library raises whatever a damaged header leads to
            value = ""
        said.append(" ".join(value.split())[:_LONGEST])
    return " · ".join(filter(None, said)) or None
