"""The mails of a mailbox (mbox), each a text of its own."""

import re
from email import message_from_bytes, policy

from ttmark.detect_service.extraction.eml_text import eml_text
from ttmark.detect_service.extraction.extraction import Extraction, Part
from ttmark.detect_service.extraction.unreadable_file import LimitExceeded, UnreadableFile

# A line of its own before each mail (RFC 4155); in a mail such a line begins with `>`.
_BETWEEN = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_LONGEST_SUBJECT = 100


def mbox_text(content: bytes) -> Extraction:
    """Each mail as `eml_text` reads it, by its number and subject; one without a text says why.

    Raises:
        UnreadableFile: not a mailbox.
    """
    before, *mails = _BETWEEN.split(content)
    if before.strip() or not mails:
        raise UnreadableFile("The file is not a mailbox (mbox) that can be read.", "damaged")
    return Extraction(
        "", parts=tuple(_part(number, _QUOTED.sub(rb"\1", mail)) for number, mail in enumerate(mails, 1))
    )


def _part(number: int, mail: bytes) -> Part:
    name = f"{number}: {_subject(mail)}".removesuffix(": ")
    try:
        return Part(name, eml_text(mail).text)
    except LimitExceeded:
        raise
    except UnreadableFile as error:
        return Part(name, problem=str(error))


def _subject(mail: bytes) -> str:
    try:
        head = message_from_bytes(mail.partition(b"\n\n")[0] + b"\n\n", policy=policy.default)
        subject = " ".join(str(head.get("Subject", "")).split())
    except MemoryError:
        raise
    except Exception:  # the library raises whatever a damaged header leads to
        return ""
    return subject[:_LONGEST_SUBJECT]
